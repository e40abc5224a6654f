"""A client of `tutti serve --socket PATH`: NumPy and the standard library only.

    client = tutti_client.Client("/tmp/tutti.sock")
    y = client.predict(x)                       # the one model that is served, or model="name"
    future = client.submit(x)                   # a concurrent.futures.Future

Arrays go through memory that is shared with the server. Usable from many threads, and from multiprocessing workers: a client that is forked
or pickled connects again where it is used next.
"""

from .client import Client
from .connection import RemoteError, RemoteTimeout

__all__ = ["Client", "RemoteError", "RemoteTimeout"]
