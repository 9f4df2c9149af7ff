#!/usr/bin/env python3
"""Where the processor time of a run of apnscope goes, stage by stage: stages.py PROGRAM [ARGUMENT ...]

Samples the program with perf (Debian: linux-perf) and asks llvm-symbolizer (llvm) for the source file of each sample,
inlined functions included, so that a stage is what its files do wherever they were inlined. Prints milliseconds of all
threads together and shares. Exits with 69 when the machine does not let perf count.
"""

import collections
import pathlib
import re
import subprocess
import sys
import tempfile

# In this order: the first that the file's name has.
STAGES = [
    ("decrypt", r"/TLSDecryption/|/TLSFoundation/"),
    ("threads", r"/Dissection/Parallel/|/StreamReader\.swift"),
    ("reassemble", r"/(TCPReassembler|DirectionalStream|FlowTable|RecentSegments|TCPSegment|EventBatch|StreamEvent)\.swift"),
    ("walk", r"/PacketCapture/"),
    ("session", r"/(BinarySession\w*|WriteTimes)\.swift"),
    ("frame", r"/BinaryProtocol/|/(ClientStream|ClientStreams|CapturePosition)\.swift|/Bytes/RawSpan"),
    ("write", r"/(ByteWriter|ControlCharacters|\w*Writer|\w*Serializer|Record\+Fields|RFC3339|NotificationFacts)\.swift|/Bytes/JSON/|/CommandFiles/"),
    ("dissect", r"/(Dissection|Dissector\w*|Dissector\+TLS|Connection|RecordEmitter|Record)\.swift"),
    ("count", r"/Dissection/|/Measurement/|/Payload/|/ContentDigest\.swift"),
]
LIBRARIES = [
    ("read (kernel: copies, waking, memory)", r"kernel|vdso|\[unknown\]"),
    ("decrypt", r"libcrypto"),
    ("threads", r"libdispatch|libpthread|ld-linux|libswiftDispatch"),
    ("copies (libc)", r"libc\.so"),
    ("Swift runtime", r"libswift"),
]


def run(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def types():
    """The source file of each type by its name, without those that are named like a module, which all names have."""
    sources = pathlib.Path(__file__).parent.parent / "Sources"
    modules = {folder.name for folder in sources.iterdir()}
    return {file.stem: str(file) for file in sources.rglob("*.swift") if file.stem not in modules}


def names(mangled):
    """The names in a mangled one, each of which stands after its length."""
    for length in re.finditer(r"\d+", mangled):
        yield mangled[length.end() : length.end() + int(length[0])]


def stage_of(frames, types):
    """The stage of the innermost inlined function that is the program's own: by its file, or, where the compiler has
    left that out, by its type's."""
    files = [types[name] for frame in frames if frame.startswith("$s") for name in names(frame) if name in types]
    for frame in [*frames, *files]:
        for name, pattern in STAGES:
            if re.search(pattern, frame):
                return name
    return "other"


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        data = f"{folder}/perf.data"
        rate = 5_000
        # What the program writes goes nowhere: a pipe would count as its own work.
        command = ["perf", "record", "-o", data, "-e", "cpu-clock", "-F", str(rate), *sys.argv[1:]]
        sampled = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if sampled.returncode != 0:
            print(f"no stages: {(sampled.stderr.strip() or 'perf failed').splitlines()[-1]}")
            return 69
        script = run("perf", "script", "-i", data, "-F", "ip,dso", "--show-mmap-events").stdout
    base = None
    samples = collections.Counter()
    for line in script.splitlines():
        mapping = re.search(r"\[0x([0-9a-f]+)\(0x[0-9a-f]+\) @ (0x[0-9a-f]+|0) .*r-xp (\S+)", line)
        if mapping:
            if mapping[3].endswith("/apnscope"):
                base = int(mapping[1], 16) - int(mapping[2], 16)
            continue
        sample = re.match(r"\s*([0-9a-f]+) \((.*)\)", line)
        if sample:
            samples[int(sample[1], 16), sample[2]] += 1
    own = [address for address, library in samples if library.endswith("/apnscope")]
    asked = "\n".join(hex(address - (base or 0)) for address in own) + "\n"
    answers = run("llvm-symbolizer", f"--obj={program}", "--inlines", "--functions=linkage", input=asked).stdout
    known = types()
    stages = {address: stage_of(answer.splitlines(), known) for address, answer in zip(own, answers.split("\n\n"))}
    totals = collections.Counter()
    for (address, library), count in samples.items():
        if address in stages:
            totals[stages[address]] += count
        else:
            totals[next((name for name, pattern in LIBRARIES if re.search(pattern, library)), "other")] += count
    whole = sum(totals.values()) or 1
    for name, count in totals.most_common():
        print(f"  {name:<40} {1000 * count / rate:8.1f} ms {100 * count / whole:6.1f} %")
    print(f"  {'all threads':<40} {1000 * whole / rate:8.1f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
