package redistest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/internal/processtest"
)

// Failover is a primary with a replica, and a Sentinel that makes the replica
// the primary when the other has gone.
type Failover struct {
	Name     string // what the Sentinel calls it
	Primary  *Server
	Replica  *Server
	Sentinel *Server
}

// StartFailover starts the three.
func StartFailover(t testing.TB) *Failover {
	t.Helper()
	f := &Failover{Name: "primary"}
	f.Primary = Start(t)
	f.Replica = Start(t, "--replicaof", "127.0.0.1", f.Primary.Port())
	processtest.WaitFor(t, "replication", func() bool {
		return strings.Contains(f.Replica.MustDo("INFO", "replication"), "master_link_status:up")
	})
	config := fmt.Sprintf("sentinel monitor %[1]s 127.0.0.1 %[2]s 1\nsentinel down-after-milliseconds %[1]s 500\nsentinel failover-timeout %[1]s 2000\n", f.Name, f.Primary.Port())
	f.Sentinel = start(t, config, []string{"--sentinel"})
	processtest.WaitFor(t, "the Sentinel to know the replica", func() bool {
		return strings.Contains(f.Sentinel.MustDo("INFO", "sentinel"), "slaves=1")
	})
	return f
}

// Replicated reports whether the replica has all that the primary has.
func (f *Failover) Replicated() bool {
	at := func(s *Server, field string) (n int64) {
		_, after, _ := strings.Cut(s.MustDo("INFO", "replication"), field+":")
		_, _ = fmt.Sscan(after, &n)
		return n
	}
	primary, replica := at(f.Primary, "master_repl_offset"), at(f.Replica, "slave_repl_offset")
	return primary > 0 && replica >= primary
}
