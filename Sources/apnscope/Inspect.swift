import ArgumentParser
struct Inspect: ParsableCommand { }
