package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// go-redis logs each failed connection to the standard error. The command prints
// one line instead.
func TestAStoreThatIsGoneIsOneLineOfErrors(t *testing.T) {
	path := file(t, "limits.yaml", "policies: [{name: a, key: ip, limits: 1/h}]")
	var errs bytes.Buffer
	c := exec.CommandContext(t.Context(), os.Args[0], "top", path, "--store", "redis://127.0.0.1:1")
	c.Env, c.Stderr = append(os.Environ(), asProgram+"=1"), &errs
	if err := c.Run(); err == nil {
		t.Error("there is no error")
	}
	if got := errs.String(); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "floodgate: redis://127.0.0.1:1: ") {
		t.Errorf("prints %q, want one line", got)
	}
}
