package redistest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/internal/processtest"
)

// Slots is the number of hash slots of a cluster.
const Slots = 16384

// Cluster is a cluster of primaries without replicas.
type Cluster struct {
	Nodes []*Server
}

// StartCluster starts n nodes, each with an equal part of the slots.
func StartCluster(t testing.TB, n int) *Cluster {
	t.Helper()
	c := &Cluster{}
	for i := range n {
		s := Start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no")
		c.Nodes = append(c.Nodes, s)
		args := []string{"CLUSTER", "ADDSLOTS"}
		for slot := i * Slots / n; slot < (i+1)*Slots/n; slot++ {
			args = append(args, fmt.Sprint(slot))
		}
		s.MustDo(args...)
		s.MustDo("CLUSTER", "SET-CONFIG-EPOCH", fmt.Sprint(i+1))
	}
	for _, s := range c.Nodes[1:] {
		s.MustDo("CLUSTER", "MEET", "127.0.0.1", c.Nodes[0].Port())
	}
	for _, s := range c.Nodes {
		processtest.WaitFor(t, "the cluster", func() bool {
			info := s.MustDo("CLUSTER", "INFO")
			nodes := s.MustDo("CLUSTER", "NODES")
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_slots_assigned:%d", Slots)) &&
				strings.Count(nodes, " connected") == n && !strings.Contains(nodes, "handshake")
		})
	}
	return c
}

// Addrs returns the nodes' addresses.
func (c *Cluster) Addrs() []string {
	var addrs []string
	for _, s := range c.Nodes {
		addrs = append(addrs, s.Addr)
	}
	return addrs
}

// ID returns the node's name in its cluster.
func (s *Server) ID() string {
	s.t.Helper()
	return s.MustDo("CLUSTER", "MYID")
}

// Owner returns the node that has the slot, by its own word.
func (c *Cluster) Owner(slot int) *Server {
	for _, s := range c.Nodes {
		for line := range strings.Lines(s.MustDo("CLUSTER", "NODES")) {
			fields := strings.Fields(line)
			if len(fields) < 8 || !strings.Contains(fields[2], "myself") {
				continue
			}
			for _, part := range fields[8:] {
				var from, to int
				if n, _ := fmt.Sscanf(part, "%d-%d", &from, &to); n == 1 {
					to = from
				} else if n == 0 {
					continue
				}
				if from <= slot && slot <= to {
					return s
				}
			}
		}
	}
	return nil
}
