"""Pushes with a library that others wrote, unmodified, and prints what the library says of each notification.

apns_providers.py LIBRARY --count 200 --key AuthKey_ID.p8 --key-id ID --team-id TEAM --ca ca.pem [--certificate FILE]

The libraries have the names of Apple's hosts built in: run this where those names lead to a gateway. Notification number
n goes to the token n, 32 bytes in hexadecimal. Prints an object: by token "200", the reason, or "error: " and the
exception's type.
"""

import argparse
import asyncio
import json
import logging
import ssl

TOPIC = "com.example.app"


def tokens(count):
    return [f"{number:064x}" for number in range(count)]


def message(token):
    return {"aps": {"alert": f"number {int(token, 16)}"}}


async def with_aioapns(arguments):
    import aioapns

    trust = ssl.create_default_context(cafile=arguments.ca)
    trust.set_alpn_protocols(["h2"])
    client = aioapns.APNs(
        key=open(arguments.key, encoding="ascii").read(), key_id=arguments.key_id, team_id=arguments.team_id,
        topic=TOPIC, ssl_context=trust, max_connections=2, err_func=ignore,
    )
    said, gate = {}, asyncio.Semaphore(arguments.at_once)

    async def push(token):
        async with gate:
            try:
                answer = await asyncio.wait_for(
                    client.send_notification(aioapns.NotificationRequest(token, message(token))), arguments.patience
                )
                said[token] = "200" if answer.is_successful else answer.description
            except Exception as error:
                said[token] = f"error: {type(error).__name__}"

    await asyncio.gather(*(push(token) for token in tokens(arguments.count)))
    client.pool.close()
    return said


async def ignore(request, result):
    """Otherwise the library writes an error to its log for every answer that rejects."""


async def with_kalyke(arguments):
    import kalyke

    # A connection for each notification.
    client = kalyke.ApnsClient(
        use_sandbox=False, team_id=arguments.team_id, auth_key_id=arguments.key_id, auth_key_filepath=arguments.key
    )
    said, gate = {}, asyncio.Semaphore(min(arguments.at_once, 8))

    async def push(token):
        async with gate:
            try:
                await client.send_message(token, message(token), kalyke.ApnsConfig(topic=TOPIC))
                said[token] = "200"
            except Exception as error:
                name = type(error).__name__
                said[token] = name if isinstance(error, kalyke.exceptions.ApnsProviderException) else f"error: {name}"

    await asyncio.gather(*(push(token) for token in tokens(arguments.count)))
    return said


def with_pyapns_client(arguments):
    from pyapns_client import APNSClient, APNSException, IOSNotification, IOSPayload, IOSPayloadAlert

    client = APNSClient(
        mode=APNSClient.MODE_PROD, root_cert_path=arguments.ca, auth_key_path=arguments.key,
        auth_key_id=arguments.key_id, team_id=arguments.team_id,
    )
    said = {}
    for token in tokens(arguments.count):
        body = IOSPayload(alert=IOSPayloadAlert(body=f"number {int(token, 16)}"))
        try:
            client.push(IOSNotification(payload=body, topic=TOPIC), token)
            said[token] = "200"
        except APNSException as error:
            name = type(error).__name__
            is_reason = "Connection" not in name
            said[token] = name.removesuffix("Exception") if is_reason else f"error: {name}"
        except Exception as error:
            said[token] = f"error: {type(error).__name__}"
    client.close()
    return said


def with_apns2(arguments):
    import collections
    import collections.abc

    # The library hyper, which apns2 pushes with, is older than Python 3.10.
    for name in ("Iterable", "Mapping", "MutableMapping", "MutableSet", "Sequence", "Callable"):
        setattr(collections, name, getattr(collections.abc, name))
    import hyper.tls
    from apns2 import client, payload

    hyper.tls.cert_loc = arguments.ca
    pushing = client.APNsClient(arguments.certificate)
    said = {}
    for token in tokens(arguments.count):
        try:
            pushing.send_notification(token, payload.Payload(alert=f"number {int(token, 16)}"), TOPIC)
            said[token] = "200"
        except Exception as error:
            name, module = type(error).__name__, type(error).__module__
            said[token] = name if module == "apns2.errors" else f"error: {name}"
    return said


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library", choices=["aioapns", "kalyke", "pyapns_client", "apns2"])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=50)
    parser.add_argument("--patience", type=float, default=20)
    parser.add_argument("--key")
    parser.add_argument("--key-id")
    parser.add_argument("--team-id")
    parser.add_argument("--certificate")
    parser.add_argument("--ca", required=True)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    said = globals()[f"with_{arguments.library}"](arguments)
    print(json.dumps(asyncio.run(said) if asyncio.iscoroutine(said) else said))


main()
