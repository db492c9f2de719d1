"""Simulated power cuts and failing calls: the real server, its files' changes recorded.

`preload` starts a server with the recorder (`faults/`), `tape` reads what it recorded, `disk` is a
disk that may lose what was not synced, `ledger` knows what was acknowledged, `acts` are what is
done, `looking` what is found afterwards, `cuts` and `faults` put it together.
"""
