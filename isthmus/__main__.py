"""`python -m isthmus` is the command `isthmus`."""

from isthmus.commands import main

main()
