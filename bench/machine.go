package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// machine describes what the bench runs on.
func machine() string {
	parts := []string{fmt.Sprintf("%d cores", runtime.NumCPU())}
	if model := find("/proc/cpuinfo", "model name"); model != "" {
		parts[0] += " of " + model
	}
	if memory := find("/proc/meminfo", "MemTotal"); memory != "" {
		parts = append(parts, memory+" of memory")
	}
	if system := find("/etc/os-release", "PRETTY_NAME"); system != "" {
		parts = append(parts, strings.Trim(system, `"`))
	}
	parts = append(parts, runtime.Version())
	if out, err := exec.Command("redis-server", "--version").Output(); err == nil { //nolint:noctx // it answers at once
		for word := range strings.FieldsSeq(string(out)) {
			if v, found := strings.CutPrefix(word, "v="); found {
				parts = append(parts, "Redis "+v)
			}
		}
	}
	return strings.Join(parts, ", ")
}

// find returns what a line of a file says behind a name.
func find(path, name string) string {
	f, err := os.Open(path) //nolint:gosec // one of three
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // it was read only
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, found := strings.CutPrefix(s.Text(), name); found {
			return strings.TrimSpace(strings.TrimLeft(rest, " \t:="))
		}
	}
	return ""
}
