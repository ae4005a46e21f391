package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/report"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// stored has the counters of a running service.
type stored struct {
	url, policy, rule, key string
	timeout                time.Duration

	store   *redisstore.Store
	limiter string
	rules   []core.StoreRule
}

// Open implements [core.Store]: it notes the limiter's rules.
func (s *stored) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	s.limiter, s.rules = limiter, rules
	return s.store.Open(limiter, rules)
}

// Guarantees implements [core.Store].
func (s *stored) Guarantees() core.Guarantees { return s.store.Guarantees() }

func (s *stored) flags(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&s.url, "store", "", "the Redis of the service: redis://user:password@host:port/db (also rediss, unix, redis+cluster, redis+sentinel); default: the store of FILE")
	c.Flags().DurationVar(&s.timeout, "timeout", 2*time.Second, "the longest wait for an answer of the store")
	return c
}

func (s *stored) keyFlags(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&s.policy, "policy", "", "the name of the policy")
	c.Flags().StringVar(&s.rule, "rule", "", "the rule; if it has tiers, followed by a dash and the tier (default: all rules of the policy)")
	c.Flags().StringVar(&s.key, "key", "", "the key, as explain prints it, quoted or not (default: the counter of requests without a key)")
	return s.flags(c)
}

// open loads the file over the counters of the service. Without --store it
// reports to errs which store it uses.
func (s *stored) open(path string, errs io.Writer, use func(*policy.Set) error) (err error) {
	client, server, err := s.client(path, errs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	s.store = redisstore.New(client, redisstore.Timeout(s.timeout), redisstore.WithoutDenialCache(), redisstore.AnotherInstance())
	set, err := load(path, s)
	if err != nil {
		return err
	}
	if err = use(set); err != nil && !errors.Is(err, errUsage) {
		err = fmt.Errorf("%s: %w", server, err)
	}
	return errors.Join(err, set.Close())
}

// client returns the client of the Redis that --store names, or of the file's
// Redis. server describes it, without a password.
func (s *stored) client(path string, errs io.Writer) (client redis.UniversalClient, server string, err error) {
	if s.url == "" {
		text, err := readPolicy(path)
		if err != nil {
			return nil, "", err
		}
		client, server, err = policy.RedisOf(path, text)
		if errors.Is(err, policy.ErrNoRedis) {
			return nil, "", fmt.Errorf("%w: --store is missing: %w: write --store redis://127.0.0.1:6379/0", errUsage, err)
		}
		if err == nil {
			_, err = fmt.Fprintln(errs, report.Lines("store of "+path+": "+server))
		}
		return client, server, err
	}
	if !strings.Contains(s.url, "://") {
		shown := s.url[strings.LastIndex(s.url, "@")+1:] // without a password
		return nil, "", fmt.Errorf("%w: --store: %q has no scheme: want a URL such as redis://127.0.0.1:6379/0", errUsage, shown)
	}
	if client, err = redisstore.NewClient(s.url); err != nil {
		return nil, "", fmt.Errorf("%w: --store: %w", errUsage, err)
	}
	if u, err := url.Parse(s.url); err == nil {
		server = u.Scheme + "://" + u.Host + u.Path
	}
	return client, server, nil
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
			quotas, err := set.QuotasOf(name, key)
			if err != nil {
				return nil, err
			}
			hits = append(hits, core.Hit{Rule: name, Key: key, Quotas: quotas})
		}
	}
	if len(hits) == 0 {
		return nil, fmt.Errorf("%w: --rule: %q: the policy has %s", errUsage, s.rule, strings.Join(rules, ", "))
	}
	return hits, nil
}

// limiterOf returns the limiter of the policy that the flags name.
func (s *stored) limiterOf(set *policy.Set) *core.Limiter {
	for _, p := range set.Policies() {
		if p.Name == s.policy && p.DryRun {
			return set.DryRun()
		}
	}
	return set.Limiter()
}

func inspectCommand() *cobra.Command {
	var s stored
	return s.keyFlags(&cobra.Command{
		Use:   "inspect FILE",
		Short: "Show what a key has used of its limits",
		Long:  "inspect shows what a key has used of its limits in the Redis of a running service. It charges nothing.",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return s.open(args[0], c.ErrOrStderr(), func(set *policy.Set) error { return s.inspect(c.Context(), set, c.OutOrStdout()) })
		},
	})
}

func (s *stored) inspect(ctx context.Context, set *policy.Set, out io.Writer) error {
	hits, err := s.hits(set)
	if err != nil {
		return err
	}
	if err := inspectHits(ctx, s.limiterOf(set), hits, out); err != nil {
		return err
	}
	for _, p := range set.Policies() {
		if p.Name == s.policy && p.Wait > 0 && !p.DryRun {
			_, err := fmt.Fprintf(out, "a request over a limit waits for its turn, at most %v\n", p.Wait)
			return err
		}
	}
	return nil
}

func inspectHits(ctx context.Context, l *core.Limiter, hits []core.Hit, out io.Writer) error {
	var b strings.Builder
	b.WriteString("rule\tlimit\tused\tremaining\treset in\n")
	for _, hit := range hits {
		d, err := l.Peek(ctx, 1, usage(hit))
		if err != nil {
			return err
		}
		i := 0
		for status := range d.Limits() {
			limit, remaining := status.Limit.String(), strconv.FormatInt(status.Remaining, 10)
			if hit.Quotas != nil && hit.Quotas[i] == core.Unlimited {
				_, window, _ := strings.Cut(limit, " ")
				limit, remaining = "unlimited "+window, "unlimited"
			}
			i++
			fmt.Fprintf(&b, "%s\t%s\t%d\t%s\t%s\n", hit.Rule, limit, status.Limit.Capacity()-status.Remaining, remaining, resetIn(status.Limit, status.Remaining, status.ResetAfter))
		}
	}
	return align(out, b.String())
}

// resetIn says when a limit has its whole quota again. Nobody knows when requests in flight end.
func resetIn(l core.Limit, remaining int64, after time.Duration) string {
	if l.Algorithm == core.Leases && remaining < l.Quota {
		return "when they end"
	}
	return after.Round(time.Millisecond).String()
}

// usage returns a hit that says what the key has used: nothing is used of a quota that is
// unlimited, so that it is asked for with a large one.
func usage(hit core.Hit) core.Hit {
	hit.Quotas = slices.Clone(hit.Quotas)
	for i, q := range hit.Quotas {
		if q == core.Unlimited {
			hit.Quotas[i] = core.MaxLogQuota // which every algorithm can have
		}
	}
	return hit
}

// align writes lines whose cells are separated by tabs.
func align(out io.Writer, lines string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, err := io.WriteString(w, lines)
	return errors.Join(err, w.Flush())
}

func resetCommand() *cobra.Command {
	var s stored
	return s.keyFlags(&cobra.Command{
		Use:   "reset FILE",
		Short: "Reset the counters of a key",
		Long:  "reset deletes what a key has used, in the Redis of a running service. The next request of the key begins a new window.",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return s.open(args[0], c.ErrOrStderr(), func(set *policy.Set) error {
				hits, err := s.hits(set)
				if err != nil {
					return err
				}
				used, err := used(c.Context(), s.limiterOf(set), hits)
				if err != nil {
					return err
				}
				// Reset even if there was no counter: a request may come in
				// between.
				if err := s.limiterOf(set).Reset(c.Context(), hits...); err != nil {
					return err
				}
				what := fmt.Sprintf("key %s of policy %s", report.Key(hits[0].Key), s.policy)
				if len(used) == 0 {
					_, err = fmt.Fprintf(c.OutOrStdout(), "nothing to reset: %s has used nothing\n", what)
				} else {
					_, err = fmt.Fprintf(c.OutOrStdout(), "reset: %s, %s\n", what, strings.Join(used, ", "))
				}
				return err
			})
		},
	})
}

// used returns the rules of which the key has used something.
func used(ctx context.Context, l *core.Limiter, hits []core.Hit) (rules []string, err error) {
	for _, hit := range hits {
		d, err := l.Peek(ctx, 1, usage(hit))
		if err != nil {
			return nil, err
		}
		for status := range d.Limits() {
			if status.Remaining < status.Limit.Capacity() {
				rules = append(rules, "rule "+hit.Rule)
				break
			}
		}
	}
	return rules, nil
}
