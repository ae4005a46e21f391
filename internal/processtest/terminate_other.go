//go:build !unix

package processtest

import "os"

// Windows has no signal that asks a process to end.
func terminate(p *os.Process) error { return p.Kill() }
