package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/report"
	"github.com/floodgate-go/floodgate/policy"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// stored is the counters of a running service.
type stored struct {
	url, policy, rule, key string
	timeout                time.Duration
	top                    int

	store   *redisstore.Store
	limiter string
	rules   []core.StoreRule
}

// Bind implements [core.Store]: it notes what the limiter's rules are.
func (s *stored) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	s.limiter, s.rules = limiter, rules
	return s.store.Bind(limiter, rules)
}

func (s *stored) flags(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&s.url, "store", "", "the service's Redis: redis://user:password@host:port/db (also rediss, unix, redis+cluster, redis+sentinel)")
	c.Flags().DurationVar(&s.timeout, "timeout", 2*time.Second, "how long it may take to answer")
	return c
}

func (s *stored) keyFlags(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&s.policy, "policy", "", "the policy")
	c.Flags().StringVar(&s.rule, "rule", "", "the rule, with its tier behind a dash where it has tiers (default: all)")
	c.Flags().StringVar(&s.key, "key", "", "the key, as explain prints it, quoted or not (default: the one of requests without a key)")
	return s.flags(c)
}

// open loads the file over the service's counters.
func (s *stored) open(path string, use func(*policy.Set) error) (err error) {
	if !strings.Contains(s.url, "://") {
		return fmt.Errorf("%w: --store: want a URL such as redis://127.0.0.1:6379/0", errUsage)
	}
	client, err := redisstore.NewClient(s.url)
	if err != nil {
		return fmt.Errorf("%w: --store: %w", errUsage, err)
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	s.store = redisstore.New(client, redisstore.Timeout(s.timeout), redisstore.WithoutDenialCache(), redisstore.AnotherInstance())
	set, err := load(path, s)
	if err != nil {
		return err
	}
	return errors.Join(use(set), set.Close())
}

// hits returns the counters that the flags name.
func (s *stored) hits(set *policy.Set) ([]core.Hit, error) {
	key, err := report.ParseKey(s.key)
	if err != nil {
		return nil, fmt.Errorf("%w: --key: %w", errUsage, err)
	}
	var policies, rules []string
	for _, p := range set.Policies() {
		policies = append(policies, p.Name)
		if p.Name == s.policy {
			for _, r := range p.Rules {
				rules = append(rules, r.Name)
			}
		}
	}
	if rules == nil {
		if s.policy == "" {
			return nil, fmt.Errorf("%w: --policy is missing: the file has %s", errUsage, strings.Join(policies, ", "))
		}
		return nil, fmt.Errorf("%w: --policy: %q: the file has %s", errUsage, s.policy, strings.Join(policies, ", "))
	}
	var hits []core.Hit
	for _, name := range rules {
		// The name of the policy may be left out of the rule's.
		if s.rule == "" || s.rule == name || s.policy+"."+s.rule == name {
			hits = append(hits, core.Hit{Rule: name, Key: key})
		}
	}
	if len(hits) == 0 {
		return nil, fmt.Errorf("%w: --rule: %q: the policy has %s", errUsage, s.rule, strings.Join(rules, ", "))
	}
	return hits, nil
}

func inspectCommand() *cobra.Command {
	var s stored
	return s.keyFlags(&cobra.Command{
		Use:   "inspect FILE",
		Short: "Tell what a key has used of its limits",
		Long:  "inspect tells what a key has used of its limits in the Redis of a running service. It charges nothing.",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return s.open(args[0], func(set *policy.Set) error { return s.inspect(c.Context(), set, c.OutOrStdout()) })
		},
	})
}

func (s *stored) inspect(ctx context.Context, set *policy.Set, out io.Writer) error {
	hits, err := s.hits(set)
	if err != nil {
		return err
	}
	l := set.Limiter()
	var b strings.Builder
	b.WriteString("rule\tlimit\tused\tleft\tall again in\n")
	for _, hit := range hits {
		d, err := l.Peek(ctx, 1, hit)
		if err != nil {
			return err
		}
		for status := range d.Limits() {
			fmt.Fprintf(&b, "%s\t%s\t%d\t%d\t%v\n", hit.Rule, status.Limit, capacity(status.Limit)-status.Remaining, status.Remaining, status.ResetAfter.Round(time.Millisecond))
		}
	}
	return align(out, b.String())
}

// align writes lines whose cells are cut by tabs.
func align(out io.Writer, lines string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, err := io.WriteString(w, lines)
	return errors.Join(err, w.Flush())
}

// capacity is how many hits a limit can admit at once.
func capacity(l core.Limit) int64 {
	if l.Algorithm == core.TokenBucket && l.Burst > 0 {
		return l.Burst
	}
	return l.Quota
}

func resetCommand() *cobra.Command {
	var s stored
	return s.keyFlags(&cobra.Command{
		Use:   "reset FILE",
		Short: "Forget what a key has used",
		Long:  "reset forgets what a key has used, in the Redis of a running service: it begins anew with its next request.",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return s.open(args[0], func(set *policy.Set) error {
				hits, err := s.hits(set)
				if err != nil {
					return err
				}
				used, err := used(c.Context(), set.Limiter(), hits)
				if err != nil {
					return err
				}
				// Also if nothing was there: a request may come in between.
				if err := set.Limiter().Reset(c.Context(), hits...); err != nil {
					return err
				}
				what := fmt.Sprintf("the key %s of policy %s", report.Key(hits[0].Key), s.policy)
				if len(used) == 0 {
					_, err = fmt.Fprintf(c.OutOrStdout(), "nothing to forget: %s has used nothing\n", what)
				} else {
					_, err = fmt.Fprintf(c.OutOrStdout(), "forgotten: what %s has used in %s\n", what, strings.Join(used, ", "))
				}
				return err
			})
		},
	})
}

// used returns the rules of which the key has used something.
func used(ctx context.Context, l *core.Limiter, hits []core.Hit) (rules []string, err error) {
	for _, hit := range hits {
		d, err := l.Peek(ctx, 1, hit)
		if err != nil {
			return nil, err
		}
		for status := range d.Limits() {
			if status.Remaining < capacity(status.Limit) {
				rules = append(rules, "rule "+hit.Rule)
				break
			}
		}
	}
	return rules, nil
}

func topCommand() *cobra.Command {
	var s stored
	c := &cobra.Command{
		Use:   "top FILE",
		Short: "Tell which keys are nearest their limits",
		Long: "top tells which keys have the least left of a limit, in the Redis of a running service. It goes through all keys of the server in small steps,\n" +
			"and charges nothing. Keys are stored as a hash of themselves: give --key to have those named that they stand for.",
		Args: cobra.ExactArgs(1),
	}
	var known []string
	c.Flags().IntVar(&s.top, "top", 20, "how many to tell")
	c.Flags().StringArrayVar(&known, "key", nil, "a key to look for; may be given several times")
	c.RunE = func(c *cobra.Command, args []string) error {
		if s.top < 1 {
			return fmt.Errorf("%w: --top: %d: want 1 or more", errUsage, s.top)
		}
		return s.open(args[0], func(set *policy.Set) error { return s.nearest(c.Context(), set, known, c.OutOrStdout()) })
	}
	return s.flags(c)
}

// near is a counter and how much of a limit it has left.
type near struct {
	policy, rule, name string
	limit              core.Limit
	result             core.Result
	used               float64 // share of the capacity
}

func (s *stored) nearest(ctx context.Context, set *policy.Set, known []string, out io.Writer) error {
	var all []near
	total := 0
	byName := map[string][]core.Limit{}
	for _, r := range s.rules {
		byName[r.Name] = r.Limits
	}
	err := s.store.Scan(ctx, s.limiter, s.rules, func(c redisstore.Stored) error {
		total++
		for i, l := range byName[c.Rule] {
			if most := capacity(l); most > 0 && c.Results[i].Remaining < most {
				all = append(all, near{set.PolicyOf(c.Rule), c.Rule, c.Name, l, c.Results[i], 1 - float64(c.Results[i].Remaining)/float64(most)})
			}
		}
		if len(all) > 4*s.top+1000 {
			all = keepNearest(all, s.top)
		}
		return nil
	})
	if err != nil {
		return err
	}
	names := map[string]string{}
	for _, r := range s.rules {
		for _, text := range known {
			key, err := report.ParseKey(text)
			if err != nil {
				return fmt.Errorf("%w: --key: %w", errUsage, err)
			}
			names[core.StoredKey(s.limiter, r.Name, []byte(key+"\x00"))] = key
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d counters\n", total)
	b.WriteString("policy\trule\tlimit\tused\tleft\tall again in\tkey\n")
	for _, n := range keepNearest(all, s.top) {
		key := n.name
		if text, found := names[n.name]; found {
			key = report.Key(text)
		}
		fmt.Fprintf(&b, "%s\t%s\t%s\t%d\t%d\t%v\t%s\n", n.policy, n.rule, n.limit, capacity(n.limit)-n.result.Remaining, n.result.Remaining, n.result.ResetAfter.Round(time.Millisecond), key)
	}
	return align(out, b.String())
}

// keepNearest sorts and cuts; what SCAN has told twice stands once.
func keepNearest(all []near, top int) []near {
	slices.SortFunc(all, func(a, b near) int {
		return cmp.Or(-cmp.Compare(a.used, b.used), strings.Compare(a.name, b.name), strings.Compare(a.limit.Name, b.limit.Name))
	})
	all = slices.CompactFunc(all, func(a, b near) bool { return a.name == b.name && a.limit.Name == b.limit.Name })
	return all[:min(top, len(all))]
}
