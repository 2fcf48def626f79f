"""Questions that the papers leave open, laid out like a paper (docs/frontier.md has the answers).

How far apart may two spaces be (`phase`, `spaces`), when does the published algorithm work
(`boundary`), what do few known pairs or none suffice for (`overlap`, `bridge`), what do
samples without a common item tell (`halves`), and what is kept of a store when its embedding model
changes (`new_model`, `judged`)? methods/ adds to those of the anchor paper what is compared with
them; problems, the runner and the evaluation are that paper's.
"""
