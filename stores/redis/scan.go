package redisstore

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
)

// Stored is a counter that Scan has found.
type Stored struct {
	// Rule is the name of its rule. Name is the name that core.StoreRule.StoredKey
	// returns for its key: the key itself is not stored.
	Rule, Name string
	// Results has the result of each limit of the rule.
	Results []core.Result
}

// scanCount is how many keys the server is asked to look at for one answer.
const scanCount = 512

// Scan calls each for every counter of a limiter with these rules on the server, until each returns
// an error. It charges nothing and is meant for tools: it goes through all of the server's keys in
// small steps (SCAN), between which other clients are served. A counter that is created or deleted
// during the scan may be missing, and a counter may be reported twice. The user needs SCAN in
// addition to the store's commands.
//
// Each step must end within the store's Timeout. Scan may be called
// concurrently, and while the store is used for the same limiter.
func (s *Store) Scan(ctx context.Context, limiter string, rules []core.StoreRule, each func(Stored) error) error {
	if err := s.check(); err != nil {
		return err
	}
	if err := s.gate.Err(); err != nil {
		return err
	}
	nodes, err := s.nodes(ctx)
	if err != nil {
		return err
	}
	b := newCounters(s, limiter, rules)
	for i := range b.rules {
		for _, node := range nodes {
			if err := s.scan(ctx, node, limiter, &b.rules[i], func(ctx context.Context, items []item) error {
				return s.show(ctx, items, each)
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// nodes returns the servers that have the keys.
func (s *Store) nodes(ctx context.Context) (all []redis.UniversalClient, err error) {
	var mu sync.Mutex // both clients go to their servers concurrently
	collect := func(_ context.Context, c *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, c)
		return nil
	}
	switch c := s.client.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(ctx, collect)
	case *redis.Ring:
		err = c.ForEachShard(ctx, collect)
	default:
		all = []redis.UniversalClient{s.client}
	}
	return all, err
}

// show calls each for the items.
func (s *Store) show(ctx context.Context, items []item, each func(Stored) error) error {
	for _, group := range s.group(items) {
		if _, err := s.ask(s.begin(ctx), verbPeek, group); err != nil {
			return err
		}
	}
	for i := range items {
		if err := each(Stored{items[i].rule.name, items[i].name, items[i].of.Results}); err != nil {
			return err
		}
	}
	return nil
}

// scan calls some for the counters of a rule on a server, some of them at a time.
func (s *Store) scan(ctx context.Context, node redis.UniversalClient, limiter string, rule *counterRule, some func(context.Context, []item) error) error {
	prefix := strings.Join([]string{"fg1", limiter, rule.name, ""}, ":") // has no character with a meaning in a pattern
	for cursor := uint64(0); ; {
		names, next, err := s.scanStep(ctx, node, prefix+"*", cursor)
		if err != nil {
			return fmt.Errorf("redis: scanning: %w", err)
		}
		items := make([]core.Item, len(names))
		named := make([]item, len(names))
		for i, name := range names {
			items[i].Results = make([]core.Result, len(rule.meters))
			named[i] = item{of: &items[i], rule: rule, name: name, limits: rule.limitsFor(&items[i], s.options.clock)}
		}
		if err := some(ctx, named); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

func (s *Store) scanStep(ctx context.Context, node redis.UniversalClient, pattern string, cursor uint64) (names []string, next uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.timeout)
	defer cancel()
	cmd := redis.NewScanCmd(ctx, node.Process, "scan", cursor, "match", pattern, "count", scanCount)
	if err := node.Process(ctx, cmd); err != nil {
		return nil, 0, err
	}
	return cmd.Result()
}
