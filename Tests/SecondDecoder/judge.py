#!/usr/bin/env python3
"""Makes payloads, has `apnscope lint` judge them, and judges them again: a second implementation of the rules.

    Tests/SecondDecoder/judge.py [--seed N] [--count N | --seconds N] APNSCOPE [VECTORS]

What is JSON is decided by Python's own parser. Which fault of grammar a text has is not compared, but that it has
exactly one. VECTORS are lines with `payload_base64`, whose bytes are changed. It prints every difference, and last a
line of JSON with what was compared. Exit code 1: something differs.
"""

import argparse
import base64
import calendar
import json
import random
import re
import subprocess
import sys
import time

GRAMMAR = {"control_character", "missing_comma", "single_quotes", "syntax", "trailing_comma", "truncated"}
GRAMMAR = {"json_" + name for name in GRAMMAR}
APS = {
    "alert": 2009, "badge": 2009, "sound": 2009, "content-available": 2011, "category": 2014, "mutable-content": 2016,
    "thread-id": 2016, "url-args": 2013, "target-content-id": 2019, "interruption-level": 2021, "relevance-score": 2021,
}  # fmt: skip
ALERT = {
    "body": 2009, "title": 2015, "subtitle": 2016, "loc-key": 2009, "loc-args": 2009, "title-loc-key": 2015,
    "title-loc-args": 2015, "subtitle-loc-key": 2016, "subtitle-loc-args": 2016, "action-loc-key": 2009,
    "launch-image": 2010, "action": 2013, "summary-arg": 2018, "summary-arg-count": 2018,
}  # fmt: skip
BESIDE = ["alert", "badge", "sound", "content-available", "category", "mutable-content", "thread-id"]
SOUND = re.compile(r"default|[^/]+\.(?i:aiff|aif|wav|caf)", re.ASCII)


ESCAPE = re.compile(r"\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\\u\{[0-9a-fA-F]{1,6}\}")
# The names that the maker uses are enough.
ENTITY = re.compile(r"&(?:#[0-9]{1,9}|#[xX][0-9a-fA-F]{1,8}|amp|quot|lt|eacute);")
OLD_EMOJI = re.compile("[" + "".join(f"{chr(page + 1)}-{chr(page + 0x5A)}" for page in range(0xE000, 0xE501, 256)) + "]")


class Number(str):
    """A number as it was written."""

    def value(self):
        """Its digits without zeros at their end, and the power of ten: nothing is lost, whatever the exponent."""
        sign, whole, fraction, exponent = re.fullmatch(r"(-?)(\d+)(?:\.(\d+))?(?:[eE]([-+]?\d+))?", self).groups()
        digits, power = (whole + (fraction or "")).lstrip("0"), int(exponent or 0) - len(fraction or "")
        stripped = digits.rstrip("0")
        return sign if stripped else "", stripped, power + len(digits) - len(stripped) if stripped else 0

    def is_one(self):
        return self.value() == ("", "1", 0)

    def is_zero(self):
        return self.value()[1] == ""


class Object(dict):
    """A dictionary that knows whether a key came twice."""

    def __init__(self, pairs):
        super().__init__(pairs)
        self.has_twice = len(self) < len(pairs)


def no_constant(text):
    raise ValueError(text)


def whole_characters(value):
    """A text with U+FFFD for every half of a surrogate pair."""
    return re.sub("[\ud800-\udfff]", "\ufffd", value)


def read(text):
    """The value of JSON text, whether a key comes twice, and whether half a surrogate pair is in it; or None."""
    found = {"twice": False, "half": bool(re.search("[\ud800-\udfff]", text))}

    def pairs(members):
        made = Object([(whole_characters(key), value) for key, value in members])
        found["twice"] |= made.has_twice
        found["half"] |= any(has_half(key) or has_half(value) for key, value in members)
        return made

    try:
        value = json.loads(
            text, object_pairs_hook=pairs, parse_int=Number, parse_float=Number, parse_constant=no_constant)
    except ValueError:
        return None
    found["half"] |= has_half(value)
    return value, found["twice"], found["half"]


def has_half(value):
    if type(value) is str:
        return bool(re.search("[\ud800-\udfff]", value))
    if isinstance(value, dict):
        return any(map(has_half, value.values()))
    return isinstance(value, list) and any(map(has_half, value))


def is_text(value):
    return type(value) is str


def is_filled(value):
    return type(value) is str and value != ""


def is_object_text(value):
    """A string that holds a JSON object."""
    inner = read(value.strip()) if is_text(value) else None
    return inner is not None and isinstance(inner[0], dict)


def has_null(value):
    if isinstance(value, dict):
        return any(map(has_null, value.values()))
    if isinstance(value, list):
        return any(map(has_null, value))
    return value is None


def normal(name):
    return re.sub("[-_. ]", "", name.lower())


def distance(a, b):
    rows = [list(range(len(b) + 1))]
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and y == a[i - 2]:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


def is_like_known(name):
    form = normal(name)
    known = map(normal, [*APS, *ALERT])
    return any(distance(form, key) <= (1 if len(key) <= 5 else 2) for key in known)


def text_of(payload, codes):
    """The text of a payload's bytes, or None where they are none."""
    zeros = tuple(byte == 0 for byte in payload[:4])
    if payload.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        coding = "utf-32"
    elif payload.startswith((b"\xff\xfe", b"\xfe\xff")):
        coding = "utf-16"
    else:
        coding = {
            (True, True, True, False): "utf-32-be", (False, True, True, True): "utf-32-le",
            (True, False, True, False): "utf-16-be", (False, True, False, True): "utf-16-le",
        }.get(zeros, "utf-8")  # fmt: skip
    if coding != "utf-8":
        codes.add("payload_utf16")
    else:
        if payload.endswith(b"\0"):
            codes.add("payload_nul_terminated")
            payload = payload.rstrip(b"\0")
        if payload.startswith(b"\xef\xbb\xbf"):
            codes.add("payload_bom")
            payload = payload[3:]
    try:
        return payload.decode(coding)
    except UnicodeDecodeError:
        codes.add("payload_bad_utf8")
        return None


def judge_size(push, era, topic, codes):
    count = len(push["payload"])
    if count == 0:
        codes.add("payload_empty")
    elif count > 256 and era is not None and era <= 2013 or count > 4096:
        codes.add("payload_too_large")
    elif count > 2048 and not (topic and topic.endswith(".voip")):
        codes.add("payload_too_large" if topic else "payload_over_2048")
    elif 256 < count <= 2048 and (push["command"] < 2 or era == 2014):
        codes.add("payload_over_256")


def judge_frame(push, era, sent, codes):
    token, expiration = push["token"], push["expiration"]
    if push["command"] == 2 and push["priority"] not in (None, 5, 10):
        codes.add("priority_value")
    if push["command"] > 0 and expiration is not None:
        if expiration == 0:
            codes.add("expiration_zero")
        elif expiration < 10**9:
            codes.add("expiration_1970")
        elif sent is not None and expiration <= sent:
            codes.add("expiration_past")
        elif expiration in (0x7FFFFFFF, 0xFFFFFFFF) or sent is not None and expiration - sent > 366 * 86400:
            codes.add("expiration_far")
    if not 32 <= len(token) <= 100 or len(token) != 32 and era is not None and era < 2016:
        codes.add("token_length")
    if len(token) >= 32 and re.fullmatch(rb"[0-9A-Fa-f <>]*", token):
        codes.add("token_hex_text")
    if token and len(set(token)) == 1:
        codes.add("token_constant")


def judge_characters(text, era, codes):
    """What the user sees as it was not meant."""
    if is_text(text):
        codes |= {"text_double_escaped"} if ESCAPE.search(text) else set()
        codes |= {"text_html_entities"} if ENTITY.search(text) else set()
        codes |= {"text_private_use"} if OLD_EMOJI.search(text) and (era is None or era >= 2012) else set()


def judge_alert(alert, era, codes):
    """Whether it is visible."""
    if is_text(alert):
        judge_characters(alert, era, codes)
        codes |= {"alert_json_text"} if is_object_text(alert) else set()
        codes |= set() if alert else {"alert_no_text"}
        return alert != ""
    if not isinstance(alert, dict):
        codes.add("alert_type")
        return False
    body = is_filled(alert.get("body")) or is_filled(alert.get("loc-key"))
    visible = body or is_filled(alert.get("title")) or is_filled(alert.get("title-loc-key"))
    if not visible:
        codes.add("alert_no_text")
    if visible and not body and (era is None or era <= 2016):
        codes.add("alert_title_only")
    if list(alert) == ["body"] and is_text(alert["body"]) and (era is None or era <= 2015):
        codes.add("alert_only_body")
    if is_object_text(alert.get("body")):
        codes.add("alert_json_text")
    if any(key in alert and not is_text(alert[key]) for key in ("title", "subtitle", "body", "launch-image", "action")):
        codes.add("alert_value_type")
    for key in ("title", "subtitle", "body", "launch-image", "action"):
        judge_characters(alert.get(key), era, codes)
    for text, start in (("body", ""), ("title", "title-"), ("subtitle", "subtitle-")):
        key, arguments = start + "loc-key", start + "loc-args"
        if key in alert and not is_text(alert[key]) and not (start and alert[key] is None):
            codes.add("loc_key_type")
        if is_filled(alert.get(text)) and is_filled(alert.get(key)):
            codes.add("loc_key_and_text")
        if arguments in alert:
            value = alert[arguments]
            for argument in value if isinstance(value, list) else []:
                judge_characters(argument, era, codes)
            if not (isinstance(value, list) and all(map(is_text, value))) and not (start and value is None):
                codes.add("loc_args_type")
            if isinstance(value, list) and alert.get(key) is None:
                codes.add("loc_args_without_key")
    if alert.get("action-loc-key") is not None and not is_text(alert["action-loc-key"]):
        codes.add("loc_key_type")
    return visible


def judge_keys(members, here, elsewhere, era, codes):
    for key in members:
        if key in here:
            if era is not None and era < here[key]:
                codes.add("key_too_new")
        elif key in elsewhere:
            codes.add("key_misplaced")
        else:
            codes.add("key_misspelt" if is_like_known(key) else "key_unknown")


def is_flag(aps, key, code, codes):
    value = aps.get(key, Number("0"))
    if isinstance(value, Number) and (value.is_one() or value.is_zero()):
        return value.is_one()
    codes.add(code)
    return False


def judge(push, era, topic, sent):
    """The codes and the kind."""
    codes = set()
    judge_frame(push, era, sent, codes)
    judge_size(push, era, topic, codes)
    text = text_of(push["payload"], codes) if push["payload"] else None
    if text is None:
        return codes, "invalid"
    found = read(text)
    if found is None:
        return codes | {"json_syntax"}, "invalid"
    value, twice, half = found
    codes |= {"json_duplicate_key"} if twice else set()
    codes |= {"json_lone_surrogate"} if half else set()
    if re.search(r"\s", re.sub(r'"(?:[^"\\]|\\.)*"', "", text), re.ASCII):
        codes.add("payload_not_minified")
    if not isinstance(value, dict):
        return codes | {"json_double_encoded" if is_object_text(value) else "json_not_object"}, "invalid"
    voip = bool(topic) and topic.endswith(".voip")
    complication = bool(topic) and topic.endswith(".complication")
    managed = bool(topic) and topic.startswith("com.apple.mgmt.")
    exempt = voip or complication or managed or bool(topic) and topic.startswith("pass.") or "mdm" in value
    if managed or not topic and "mdm" in value:
        if "mdm" not in value:
            codes.add("mdm_missing")
        else:
            codes |= set() if is_filled(value["mdm"]) else {"mdm_type"}
            codes |= {"mdm_not_alone"} if len(value) > 1 else set()
    if "aps" not in value:
        if not exempt:
            codes.add("aps_missing")
            codes |= {"key_misplaced"} if any(key in value for key in BESIDE) else set()
            like = [key for key in value if isinstance(value[key], dict) and len(normal(key)) <= 4]
            codes |= {"key_misspelt"} if any(distance(normal(key), "aps") <= 1 for key in like) else set()
        return codes, "voip" if voip else "empty"
    aps = value["aps"]
    if not isinstance(aps, dict):
        return codes | {"json_double_encoded" if is_object_text(aps) else "aps_not_dictionary"}, "invalid"

    judge_keys(aps, APS, ALERT, era, codes)
    alert = "alert" in aps and judge_alert(aps["alert"], era, codes)
    if isinstance(aps.get("alert"), dict):
        judge_keys(aps["alert"], ALERT, APS, era, codes)
    badge, sound = "badge" in aps and isinstance(aps["badge"], Number), False
    if badge:
        sign, _, power = aps["badge"].value()
        codes |= {"badge_value"} if sign or power < 0 else set()
    elif "badge" in aps:
        codes.add("badge_type")
    if is_text(aps.get("sound")):
        sound = aps["sound"] != ""
        codes |= set() if SOUND.fullmatch(aps["sound"]) else {"sound_file_name"}
    elif "sound" in aps:
        sound = isinstance(aps["sound"], dict) and (era is None or era >= 2018)
        codes |= set() if sound else {"sound_type"}
    background = is_flag(aps, "content-available", "content_available_value", codes)
    mutable = is_flag(aps, "mutable-content", "mutable_content_value", codes)
    codes |= {"category_type"} if "category" in aps and not is_text(aps["category"]) else set()
    codes |= {"thread_id_type"} if "thread-id" in aps and not is_text(aps["thread-id"]) else set()
    arguments = aps.get("url-args", [])
    codes |= set() if isinstance(arguments, list) and all(map(is_text, arguments)) else {"url_args_type"}

    kind = (
        "voip" if voip else ("alert_background" if background else "alert") if alert
        else "mutable" if mutable and not badge and not sound
        else ("newsstand" if era is not None and era <= 2012 else "background") if background
        else "badge_only" if badge else "sound_only" if sound else "empty"
    )  # fmt: skip
    if not exempt:
        codes |= {"aps_empty"} if not aps else {"aps_no_effect"} if kind == "empty" else set()
        codes |= {"key_misplaced"} if any(key in value and key not in aps for key in BESIDE) else set()
    codes |= {"custom_null"} if any(has_null(value[key]) for key in value if key != "aps") else set()
    if voip:
        return codes | ({"voip_aps_ignored"} if alert or sound or badge else set()), kind
    if complication:
        return codes | ({"complication_aps_ignored"} if alert or sound or badge else set()), kind
    if topic and topic.startswith("web.") and "url-args" not in aps:
        codes.add("url_args_missing")
    if not alert:
        codes |= {"category_without_alert"} if is_filled(aps.get("category")) else set()
        codes |= {"mutable_without_alert"} if mutable else set()
        codes |= {"background_with_badge_or_sound"} if background and (badge or sound) else set()
        if background and not badge and not sound:
            if push["command"] < 2 or push["priority"] is None:
                codes.add("silent_priority_implied")
            elif push["priority"] == 10:
                codes.add("silent_priority_10")
    elif push["command"] == 2 and push["priority"] == 5:
        codes.add("alert_priority_5")
    return codes, kind


class Maker:
    """Makes pushes that break few rules or many."""

    NAMES = [*APS, *ALERT, "aps", "mdm", "x", "Alert", "bagde", "title_loc_key", "soundd", "apns", "APS", "note", ""]
    SCALARS = [
        "1", "0", "-1", "1.0", "10e-1", "-0", "0.5", "1e400", "12e-1", "120e-1", "true", "false", "null", '""', '"x"',
        '"default"', '"Default"', '"a.caf"', '"b/a.caf"', '".caf"', '"a.AIFF"', '"{\\"a\\":1}"', '" {} "', '"{x}"',
        '"\\\\ud83c"', '"&amp; &#39;"', '"&quot"', '"\\ue04a"', '"\ue537 \ue55b"', '"\\\\u{1f600}"', '"a&#xe9;"',
        '"\\ud83c"', '"\\ud83c\\udf0a"', '"é"', "[]", "{}", '["a"]', '["a",1]', "[null]", '{"a":null}', '"[1]"',
    ]  # fmt: skip
    NOISE = [b"", b",", b"}", b"]", b"{", b"[", b'"', b"'", b":", b" ", b"\n", b"\0", b"\\", b"\\u00", b"\xe9",
        b"\xef\xbb\xbf", b"\x1f", b"null", b"True", b"0", b"-", b".", b"e", b"\xed\xa0\x80", b"\xc0\xaf"]  # fmt: skip

    def __init__(self, seed, vectors):
        self.random, self.vectors = random.Random(seed), vectors

    def key(self, names):
        name = self.random.choice(names if self.random.random() < 0.9 else self.NAMES)
        if name and self.random.random() < 0.02:
            return f'"\\u{ord(name[0]):04x}{name[1:]}"'
        return json.dumps(name)

    def object(self, names, most, value):
        keys = [self.key(names) for _ in range(self.random.randint(0, most))]
        return "{" + ",".join(f"{key}:{value(json.loads(key))}" for key in keys) + "}"

    def scalar(self):
        return self.random.choice(self.SCALARS)

    def in_aps(self, name):
        if name == "alert" and self.random.random() < 0.6:
            return self.object([*ALERT], 4, lambda _: self.scalar())
        return self.scalar()

    def at_top(self, name):
        return self.object([*APS], 4, self.in_aps) if name == "aps" and self.random.random() < 0.95 else self.scalar()

    def payload(self):
        chance = self.random.random()
        if chance < 0.25 and self.vectors:
            payload = self.random.choice(self.vectors)
        else:
            text = self.object(["aps"] * 6 + BESIDE + ["x", "y"], 3, self.at_top)
            if chance > 0.9:
                text = text.replace(",", self.random.choice([" ,", ",\n", ",\t", ",\r"]))
            if chance > 0.98:
                text = text[:-1] + ',"pad":"' + "x" * self.random.choice([200, 256, 2000, 4090]) + '"}'
            codings = ["utf-8"] * 30 + ["utf-16", "utf-16-be", "utf-32-le", "utf-8-sig"]
            payload = text.encode(self.random.choice(codings))
        if self.random.random() < 0.3:
            place = self.random.randint(0, len(payload))
            end = place + self.random.choice([0, 0, 1, 1, 3])
            payload = payload[:place] + self.random.choice(self.NOISE) + payload[end:]
        return payload if self.random.random() > 0.02 else payload[: self.random.randint(0, len(payload))]

    def push(self, sent):
        command = self.random.choice([0, 1, 2, 2, 2, 2])
        dates = [0, 1, 999_999_999, 10**9, sent, sent + 1, sent + 366 * 86400, sent + 366 * 86401]
        dates += [0x7FFFFFFF, 0xFFFFFFFF]
        token = bytes(self.random.randrange(256) for _ in range(32))
        if self.random.random() < 0.1:
            token = self.random.choice([b"", b"\0" * 32, b"ab 9<>" * 6, token[:31], token + b"x", token * 3, token * 4])
        push = {"payload": self.payload(), "command": command, "token": token, "priority": None, "expiration": None}
        if command == 2:
            push["priority"] = self.random.choice([None, 5, 5, 10, 10, 7])
        if command == 1 or command == 2 and self.random.random() < 0.9:
            push["expiration"] = self.random.choice(dates)
        return push


def record(push):
    fields = {"type": "notification", "command": push["command"]}
    fields |= {"identifier": 1} if push["command"] else {}
    fields |= {name: push[name] for name in ("expiration", "priority") if push[name] is not None}
    fields |= {"token": push["token"].hex(), "payload_length": len(push["payload"])}
    fields |= {"payload_base64": base64.b64encode(push["payload"]).decode()} if push["payload"] else {}
    return json.dumps(fields, separators=(",", ":"))


def is_deep(payload):
    """Nested deeper than either parser reads."""
    return payload.count(b"[") + payload.count(b"{") >= 500


def compare(apnscope, pushes, era, topic):
    """How many differ; what does is printed."""
    sent = calendar.timegm((era or 2015, 7, 1, 0, 0, 0))
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(sent))
    lines = [record(push)[:-1] + (f',"time":"{stamp}"}}' if era else "}") for push in pushes]
    arguments = [apnscope, "lint", "-", "--input", "lines", "--format", "json"] + (["--payload-topic", topic] if topic else [])
    told = subprocess.run(arguments, input="\n".join(lines) + "\n", capture_output=True, text=True, check=False)
    answers = told.stdout.splitlines()
    if told.returncode > 1 or len(answers) != len(pushes):
        sys.exit(f"{' '.join(arguments)} ended with {told.returncode} and {len(answers)} answers: {told.stderr}")
    differing = 0
    for push, answer in zip(pushes, map(json.loads, answers)):
        codes, kind = judge(push, era, topic, sent if era else None)
        given = set(answer["lint"])
        faults = given & GRAMMAR
        same = given - GRAMMAR == codes - GRAMMAR and len(faults) == len(codes & GRAMMAR)
        if not same or answer["kind"] != kind:
            differing += 1
            print(f"era {era}, topic {topic}, {push}")
            print(f"  apnscope: {answer['kind']} {sorted(given)}\n  here:     {kind} {sorted(codes)}")
    return differing


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("apnscope")
    parser.add_argument("vectors", nargs="?")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seconds", type=float)
    options = parser.parse_args()
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)
    vectors = []
    if options.vectors:
        with open(options.vectors, encoding="utf-8") as file:
            vectors = [base64.b64decode(json.loads(line)["payload_base64"]) for line in file]
    maker = Maker(options.seed, vectors)
    eras, topics = [None, *range(2009, 2022)], [None, "com.example.ferry", "com.example.ferry.voip", "pass.com.example"]
    topics += ["web.com.example.ferry", "com.apple.mgmt.External.1", "com.example.ferry.complication"]
    count, differing, end = 0, 0, options.seconds and time.monotonic() + options.seconds
    while time.monotonic() < end if end else count < options.count:
        era, topic = maker.random.choice(eras), maker.random.choice(topics)
        sent = calendar.timegm((era or 2015, 7, 1, 0, 0, 0))
        made = [push for push in (maker.push(sent) for _ in range(1000)) if not is_deep(push["payload"])]
        differing += compare(options.apnscope, made, era, topic)
        count += len(made)
    print(json.dumps({"payloads": count, "differing": differing}))
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
