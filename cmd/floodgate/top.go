package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/report"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// topFlags are the flags of top.
type topFlags struct {
	service
	top   int
	known []string // keys that are listed by name
}

func topCommand() *cobra.Command {
	var t topFlags
	c := &cobra.Command{
		Use:   "top FILE",
		Short: "List the keys that are nearest to their limits",
		Long: "top lists the limits of which the largest share is used, in the Redis of a running service. It reads all keys of the server in small steps\n" +
			"and charges nothing. Redis has only hashes of keys: top prints a key that --key gives by its name, and any other by its hash.\n" +
			"Unlike inspect, it does not know the quotas of single keys. It leaves out policies with dry-run: true.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if t.top < 1 {
				return fmt.Errorf("%w: --top: %d: want 1 or more", errUsage, t.top)
			}
			return t.open(args[0], func(set *policy.Set) error { return t.list(c.Context(), set, c.OutOrStdout()) })
		},
	}
	c.Flags().IntVar(&t.top, "top", 20, "how many limits to list")
	c.Flags().StringArrayVar(&t.known, "key", nil, "a key that is listed by its name instead of its hash; may be repeated")
	return t.flags(c)
}

// names returns the keys of --key, by the names of their counters in Redis.
func (t *topFlags) names() (map[string]string, error) {
	names := map[string]string{}
	for _, r := range t.rules {
		for _, text := range t.known {
			key, err := report.ParseKey(text)
			if err != nil {
				return nil, fmt.Errorf("%w: --key: %w", errUsage, err)
			}
			names[r.StoredKey(t.limiter, []byte(key+"\x00"))] = key
		}
	}
	return names, nil
}

// list writes the list.
func (t *topFlags) list(ctx context.Context, set *policy.Set, out io.Writer) error {
	names, err := t.names()
	if err != nil {
		return err
	}
	found, total := nearest{top: t.top}, int64(0)
	byName := map[string][]core.Limit{}
	for _, r := range t.rules {
		byName[r.Name] = r.Limits
	}
	err = t.Scan(ctx, t.limiter, t.rules, func(c redisstore.Stored) error {
		total++
		for i, l := range byName[c.Rule] {
			if most := l.Capacity(); c.Results[i].Remaining < most {
				found.add(near{set.PolicyOf(c.Rule), c.Rule, c.Name, l, c.Results[i], 1 - float64(c.Results[i].Remaining)/float64(most)})
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString(report.Plural(total, "counter", "counters") + "\npolicy\trule\tlimit\tused\tremaining\treset in\tkey\n")
	for _, n := range found.list() {
		key := n.name
		if text, known := names[n.name]; known {
			key = report.Key(text)
		}
		fmt.Fprintf(&b, "%s\t%s\t%s\t%d\t%d\t%v\t%s\n", n.policy, n.rule, n.limit, n.limit.Capacity()-n.result.Remaining, n.result.Remaining, n.result.ResetAfter.Round(time.Millisecond), key)
	}
	return report.Align(out, b.String())
}

// near is a counter and how much of a limit it has used.
type near struct {
	policy, rule, name string
	limit              core.Limit
	result             core.Result
	used               float64 // share of the capacity
}

// nearest keeps the counters with the largest shares of their limits, in bounded memory.
type nearest struct {
	top  int
	held []near
}

// slack is how many counters nearest holds beyond four times top, so that it sorts seldom.
const slack = 1000

func (n *nearest) add(one near) {
	if n.held = append(n.held, one); (len(n.held)-slack)/4 > n.top {
		n.held = n.list()
	}
}

// list returns the nearest counters, the largest share first. SCAN may return a counter more than
// once, even after it has changed: list returns it once.
func (n *nearest) list() []near {
	slices.SortFunc(n.held, func(a, b near) int {
		return cmp.Or(-cmp.Compare(a.used, b.used), strings.Compare(a.name, b.name), strings.Compare(a.limit.Name, b.limit.Name))
	})
	seen := map[[2]string]bool{}
	n.held = slices.DeleteFunc(n.held, func(one near) bool {
		id := [2]string{one.name, one.limit.Name}
		twice := seen[id]
		seen[id] = true
		return twice
	})
	return n.held[:min(n.top, len(n.held))]
}
