"""Sends notifications with httpx over HTTP/2, many at a time, and prints what came of each as JSON: by apns-id.

http2_client.py --url http://127.0.0.1:PORT --count 200 [--connections 2] [--ca ca.pem] [--authorization FILE]
"""

import argparse
import asyncio
import json
import uuid

import httpx


async def push(client, arguments, number, results, gate):
    identifier = str(uuid.UUID(int=number + 1))
    headers = {"apns-topic": arguments.topic, "apns-push-type": "alert", "apns-id": identifier}
    if arguments.authorization:
        headers["authorization"] = open(arguments.authorization, encoding="ascii").read().strip()
    token = f"{number:064x}"
    async with gate:
        answer = await client.post(
            f"{arguments.url}/3/device/{token}", headers=headers, content=json.dumps({"aps": {"alert": f"n {number}"}})
        )
    assert answer.http_version == "HTTP/2", answer.http_version
    assert answer.headers["apns-id"] == identifier, answer.headers
    results[identifier] = {
        "status": answer.status_code,
        "reason": answer.json()["reason"] if answer.content else None,
        "token": token,
    }


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=50)
    parser.add_argument("--topic", default="com.example.app")
    parser.add_argument("--ca")
    parser.add_argument("--authorization")
    arguments = parser.parse_args()
    results, gate = {}, asyncio.Semaphore(arguments.at_once)
    clients = [
        httpx.AsyncClient(http1=False, http2=True, verify=arguments.ca or True, timeout=60)
        for _ in range(arguments.connections)
    ]
    await asyncio.gather(
        *(push(clients[n % len(clients)], arguments, n, results, gate) for n in range(arguments.count))
    )
    for client in clients:
        await client.aclose()
    print(json.dumps(results))


asyncio.run(main())
