package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/report"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// service is the Redis of a running service. It records the limiter that was opened last,
// which is the one that denies; that of the dry runs is opened before it.
type service struct {
	*redisstore.Store
	url     string
	limiter string
	rules   []core.StoreRule
}

const (
	timeout       = 5 * time.Second // the longest wait for an answer of the store
	storeVariable = "FLOODGATE_STORE"
)

// Open implements [core.Store].
func (s *service) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	s.limiter, s.rules = limiter, rules
	return s.Store.Open(limiter, rules)
}

func (s *service) flags(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&s.url, "store", "", "the Redis of the service: redis://user:password@host:port/db (also rediss, unix, redis+cluster, redis+sentinel); default: the variable "+storeVariable)
	s.url = os.Getenv(storeVariable) // no default of the flag: a help text would show it
	return c
}

// open loads the file over the counters of the service.
func (s *service) open(path string, use func(*policy.Set) error) error {
	if s.url == "" {
		return fmt.Errorf("%w: --store is missing: want the Redis of the service, such as redis://127.0.0.1:6379/0, there or in the variable %s", errUsage, storeVariable)
	}
	if !strings.Contains(s.url, "://") {
		shown := s.url[strings.LastIndex(s.url, "@")+1:] // without a password
		return fmt.Errorf("%w: --store: %q has no scheme: want a URL such as redis://127.0.0.1:6379/0", errUsage, shown)
	}
	client, err := redisstore.NewClient(s.url)
	if err != nil {
		return fmt.Errorf("%w: --store: %w", errUsage, err)
	}
	s.Store = redisstore.New(client, redisstore.Timeout(timeout), redisstore.WithoutDenialCache(), redisstore.AnotherInstance())
	set, err := load(path, s)
	if err != nil {
		return errors.Join(err, client.Close())
	}
	if err = use(set); err != nil && !errors.Is(err, errUsage) {
		if u, parsed := url.Parse(s.url); parsed == nil {
			err = fmt.Errorf("%s://%s%s: %w", u.Scheme, u.Host, u.Path, err) // without a password
		}
	}
	return errors.Join(err, set.Close(), client.Close())
}

// keyFlags name the key that inspect, reset, grant and block work on.
type keyFlags struct {
	service
	policy, rule, key string

	l    *core.Limiter
	hits []core.Hit // one for each rule
	out  io.Writer
}

// name returns the key and its policy for a message.
func (k *keyFlags) name() string {
	return fmt.Sprintf("key %s of policy %s", report.Key(k.hits[0].Key), k.policy)
}

// command returns a command about the counters of a key.
func (k *keyFlags) command(use, short, long string, do func(context.Context) error) *cobra.Command {
	c := &cobra.Command{
		Use: use + " FILE", Short: short, Long: long, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			k.out = c.OutOrStdout()
			return k.open(args[0], func(set *policy.Set) error {
				if err := k.find(set); err != nil {
					return err
				}
				return do(c.Context())
			})
		},
	}
	c.Flags().StringVar(&k.policy, "policy", "", "the name of the policy")
	c.Flags().StringVar(&k.rule, "rule", "", "of a policy with tiers: the tier (default: all of them)")
	c.Flags().StringVar(&k.key, "key", "", "the key, as explain prints it, quoted or not (default: the counter of requests without a key)")
	return k.flags(c)
}

// find finds the counters that the flags name.
func (k *keyFlags) find(set *policy.Set) error {
	key, err := report.ParseKey(k.key)
	if err != nil {
		return fmt.Errorf("%w: --key: %w", errUsage, err)
	}
	var policies, rules []string
	all := set.Policies()
	hasStore := slices.ContainsFunc(all, func(p policy.Policy) bool { return p.Shared })
	for _, p := range all {
		if len(p.Rules) == 0 || hasStore && !p.Shared {
			continue // in-flight only, or counting: local
		}
		policies = append(policies, p.Name)
		if p.Name != k.policy {
			continue
		}
		if k.l = set.Limiter(); p.DryRun {
			k.l = set.DryRun()
		}
		for _, r := range p.Rules {
			rules = append(rules, r.Name)
			// The rule of a tier has the name POLICY-TIER. --rule may be the tier alone.
			if k.rule == "" || k.rule == r.Name || k.policy+"-"+k.rule == r.Name {
				k.hits = append(k.hits, r.Hit(key))
			}
		}
	}
	if rules == nil {
		return fmt.Errorf("%w: --policy: %q: want a policy that counts in Redis: %s", errUsage, k.policy, strings.Join(policies, ", "))
	}
	if len(k.hits) == 0 {
		return fmt.Errorf("%w: --rule: %q: want one of %s", errUsage, k.rule, strings.Join(rules, ", "))
	}
	return nil
}

func inspectCommand() *cobra.Command {
	var k keyFlags
	return k.command("inspect", "Show what a key has used of its limits",
		"inspect shows what a key has used of its limits in the Redis of a running service. It charges nothing.", k.inspect)
}

func (k *keyFlags) inspect(ctx context.Context) error {
	var b strings.Builder
	b.WriteString("rule\tlimit\tused\tremaining\treset in\n")
	for _, hit := range k.hits {
		d, err := k.l.Peek(ctx, 1, hit)
		if err != nil {
			return err
		}
		for s := range d.Limits() {
			used, remaining := strconv.FormatInt(s.Limit.Capacity()-s.Remaining, 10), strconv.FormatInt(s.Remaining, 10)
			if s.Limit.Quota == core.Unlimited {
				used, remaining = "-", "unlimited"
			}
			fmt.Fprintf(&b, "%s\t%v\t%s\t%s\t%v\n", hit.Rule, s.Limit, used, remaining, s.ResetAfter.Round(time.Millisecond))
		}
	}
	return report.Align(k.out, b.String())
}

func resetCommand() *cobra.Command {
	var k keyFlags
	return k.command("reset", "Reset the counters of a key",
		"reset deletes what a key has used in the Redis of a running service, and ends a block. The next request of the key begins a new window.", k.reset)
}

func (k *keyFlags) reset(ctx context.Context) error {
	var used []string
	for _, hit := range k.hits {
		d, err := k.l.Peek(ctx, 1, hit)
		if err != nil {
			return err
		}
		for s := range d.Limits() {
			if s.Remaining < s.Limit.Capacity() && !slices.Contains(used, "rule "+hit.Rule) {
				used = append(used, "rule "+hit.Rule)
			}
		}
	}
	// A key that has used nothing is reset too: a request may come in between.
	if err := k.l.Reset(ctx, k.hits...); err != nil {
		return err
	}
	text := fmt.Sprintf("reset: %s, %s\n", k.name(), strings.Join(used, ", "))
	if len(used) == 0 {
		text = fmt.Sprintf("nothing to reset: %s has used nothing\n", k.name())
	}
	_, err := io.WriteString(k.out, text)
	return err
}

func grantCommand() *cobra.Command {
	var k keyFlags
	var n int64
	c := k.command("grant", "Give a key extra hits",
		"grant gives a key extra hits in the Redis of a running service: it takes back as many of the hits that the key has used, the newest first, and shows what is left. "+
			"A key never has more left than its whole quota. A block stays, and a rule with a lockout cannot be granted: reset ends both.",
		func(ctx context.Context) error {
			if _, err := k.l.Grant(ctx, n, k.hits...); err != nil {
				return err
			}
			return k.inspect(ctx)
		})
	c.Flags().Int64Var(&n, "hits", 0, "how many hits")
	c.PreRunE = func(*cobra.Command, []string) error {
		if n < 1 || n > core.MaxQuota {
			return fmt.Errorf("%w: --hits: %d: must be from 1 to %d", errUsage, n, int64(core.MaxQuota))
		}
		return nil
	}
	return c
}

func blockCommand() *cobra.Command {
	var k keyFlags
	var length time.Duration
	c := k.command("block", "Deny all requests of a key for some time",
		"block denies all requests of a key, in every process of a running service that counts in Redis. Each process notices it within a second. reset ends a block.",
		func(ctx context.Context) error {
			if err := k.l.Block(ctx, length, k.hits...); err != nil {
				return err
			}
			_, err := fmt.Fprintf(k.out, "blocked: %s, for %v\n", k.name(), length)
			return err
		})
	c.Flags().DurationVar(&length, "for", 0, "how long, such as 30m")
	c.PreRunE = func(*cobra.Command, []string) error {
		if length <= 0 || length > core.MaxWindow {
			return fmt.Errorf("%w: --for: %v: want more than 0 and at most %v", errUsage, length, core.MaxWindow)
		}
		return nil
	}
	return c
}
