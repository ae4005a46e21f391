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
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/report"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// service is the Redis of a running service. It notes what is opened in it.
type service struct {
	*redisstore.Store
	url     string
	limiter string
	rules   []core.StoreRule
}

// timeout is the longest wait for an answer of the store.
const timeout = 5 * time.Second

// Open implements [core.Store].
func (s *service) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	s.limiter, s.rules = limiter, rules
	return s.Store.Open(limiter, rules)
}

func (s *service) flags(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&s.url, "store", "", "the Redis of the service: redis://user:password@host:port/db (also rediss, unix, redis+cluster, redis+sentinel); default: the store of FILE")
	return c
}

// open loads the file over the counters of the service. Without --store it reports to
// errs which Redis it uses.
func (s *service) open(path string, errs io.Writer, use func(*policy.Set) error) (err error) {
	client, server, err := s.client(path, errs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	s.Store = redisstore.New(client, redisstore.Timeout(timeout), redisstore.WithoutDenialCache(), redisstore.AnotherInstance())
	set, err := load(path, s)
	if err != nil {
		return err
	}
	if err = use(set); err != nil && !errors.Is(err, errUsage) {
		err = fmt.Errorf("%s: %w", server, err)
	}
	return errors.Join(err, set.Close())
}

// client returns the client of the Redis that --store names, or of the file's Redis.
// server describes it, without a password.
func (s *service) client(path string, errs io.Writer) (client redis.UniversalClient, server string, err error) {
	if s.url == "" {
		text, err := readPolicy(path)
		if err != nil {
			return nil, "", err
		}
		client, server, err = policy.RedisOf(path, text)
		if errors.Is(err, policy.ErrNoRedis) {
			return nil, "", fmt.Errorf("%w: this command is for counters in Redis: %w (if the service counts in Redis, write --store redis://127.0.0.1:6379/0)", errUsage, err)
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

// counted is the key that the flags of inspect, reset, grant and block name.
type counted struct {
	service
	policy, rule, key string

	l    *core.Limiter
	hits []core.Hit // one for each rule
	out  io.Writer
}

// name names the key for a message.
func (k *counted) name() string {
	return fmt.Sprintf("key %s of policy %s", report.Key(k.hits[0].Key), k.policy)
}

// command returns a command about the counters of a key.
func (k *counted) command(use, short, long string, do func(context.Context) error) *cobra.Command {
	c := &cobra.Command{
		Use: use + " FILE", Short: short, Long: long, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			k.out = c.OutOrStdout()
			return k.open(args[0], c.ErrOrStderr(), func(set *policy.Set) error {
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
func (k *counted) find(set *policy.Set) error {
	key, err := report.ParseKey(k.key)
	if err != nil {
		return fmt.Errorf("%w: --key: %w", errUsage, err)
	}
	var policies, rules []string
	for _, p := range set.Policies() {
		policies = append(policies, p.Name)
		if p.Name != k.policy {
			continue
		}
		if k.l = set.Limiter(); p.DryRun {
			k.l = set.DryRun()
		}
		for _, r := range p.Rules {
			rules = append(rules, r.Name)
			// The name of the policy may be left out of the rule's: then it is the tier's.
			if k.rule == "" || k.rule == r.Name || k.policy+"-"+k.rule == r.Name {
				quotas, err := set.QuotasOf(r.Name, key)
				if err != nil {
					return err
				}
				k.hits = append(k.hits, core.Hit{Rule: r.Name, Key: key, Quotas: quotas})
			}
		}
	}
	switch {
	case rules == nil && k.policy == "":
		return fmt.Errorf("%w: --policy is missing: the file has %s", errUsage, strings.Join(policies, ", "))
	case rules == nil:
		return fmt.Errorf("%w: --policy: %q: the file has %s", errUsage, k.policy, strings.Join(policies, ", "))
	case len(k.hits) == 0:
		return fmt.Errorf("%w: --rule: %q: the policy has %s", errUsage, k.rule, strings.Join(rules, ", "))
	}
	return nil
}

func inspectCommand() *cobra.Command {
	var k counted
	return k.command("inspect", "Show what a key has used of its limits",
		"inspect shows what a key has used of its limits in the Redis of a running service. It charges nothing.", k.inspect)
}

func (k *counted) inspect(ctx context.Context) error {
	var b strings.Builder
	b.WriteString("rule\tlimit\tused\tremaining\treset in\n")
	for _, hit := range k.hits {
		d, err := k.l.Peek(ctx, 1, hit)
		if err != nil {
			return err
		}
		for s := range d.Limits() {
			limit, used, remaining := s.Limit.String(), strconv.FormatInt(s.Limit.Capacity()-s.Remaining, 10), strconv.FormatInt(s.Remaining, 10)
			if s.Limit.Quota == core.Unlimited {
				_, window, _ := strings.Cut(limit, " ")
				limit, used, remaining = "unlimited "+window, "-", "unlimited"
			}
			fmt.Fprintf(&b, "%s\t%s\t%s\t%s\t%v\n", hit.Rule, limit, used, remaining, s.ResetAfter.Round(time.Millisecond))
		}
	}
	return report.Align(k.out, b.String())
}

func resetCommand() *cobra.Command {
	var k counted
	return k.command("reset", "Reset the counters of a key",
		"reset deletes what a key has used in the Redis of a running service, and ends a block. The next request of the key begins a new window.", k.reset)
}

func (k *counted) reset(ctx context.Context) error {
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
	var k counted
	var n int64
	c := k.command("grant", "Give a key extra hits",
		"grant gives a key extra hits in the Redis of a running service: it takes back as many of the hits that the key has used, the newest first, and shows what is left. "+
			"A key never has more left than its whole quota. A rule with a lockout cannot be granted: reset ends a wait.",
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
	var k counted
	var length time.Duration
	c := k.command("block", "Deny all requests of a key for some time",
		"block denies all requests of a key, in every process of a running service that counts in Redis. The services notice it within a second. reset ends a block.",
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
