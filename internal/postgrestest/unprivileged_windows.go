package postgrestest

import (
	"syscall"
	"testing"
)

// unprivileged changes nothing: PostgreSQL's programs give up an
// administrator's rights themselves on Windows.
func unprivileged(testing.TB, string) *syscall.SysProcAttr { return nil }
