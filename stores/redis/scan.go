package redisstore

import (
	"context"
	"slices"
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

// scanTogether is how many counters one script reads. The time of a script grows with the square
// of this number, and the server answers nobody meanwhile.
const scanTogether = 16

// Scan calls each for every counter of a limiter with these rules on the server, until each returns
// an error. It charges nothing and is meant for tools: it goes through all of the server's keys in
// small steps (SCAN), between which other clients are served. A counter that is created or deleted
// during the scan may be missing, and a counter may be reported twice. The user needs SCAN in
// addition to the store's commands.
//
// Each step must end within the store's Timeout. Scan may be called
// concurrently, and while the store is used for the same limiter.
func (s *Store) Scan(ctx context.Context, limiter string, rules []core.StoreRule, each func(Stored) error) error {
	if err := s.ready(); err != nil {
		return err
	}
	return s.scan(ctx, newCounters(s, limiter, rules), verbPeek, each)
}

// scan runs a verb on all stored items of counters, some of them at a time, and calls each for them.
func (s *Store) scan(ctx context.Context, b *counters, verb byte, each func(Stored) error) error {
	nodes, err := bounded(ctx, s, s.nodes)
	if err != nil {
		return classify(err, false)
	}
	prefix := "fg1:" + b.limiter + ":" // has no character with a meaning in a pattern
	for _, node := range nodes {
		for cursor, more := uint64(0), true; more; more = cursor != 0 {
			page, err := bounded(ctx, s, func(ctx context.Context) (*redis.ScanCmd, error) {
				cmd := node.Scan(ctx, cursor, prefix+"*", scanCount)
				return cmd, cmd.Err()
			})
			if err != nil {
				return classify(err, false)
			}
			var names []string
			names, cursor = page.Val()
			list := new(itemList)
			for _, name := range names {
				ruleName, _, _ := strings.Cut(name[len(prefix):], ":")
				for i := range b.rules {
					if rule := &b.rules[i]; rule.name == ruleName {
						of := &core.Item{Results: make([]core.Result, len(rule.meters))}
						list.items = append(list.items, item{of: of, rule: rule, name: name, limits: rule.limitsFor(of, s.options.clock)})
					}
				}
			}
			for _, group := range s.group(list) {
				for some := range slices.Chunk(group, scanTogether) {
					if _, err := s.ask(s.begin(ctx), verb, some); err != nil {
						return err
					}
					for _, it := range some {
						if err := each(Stored{it.rule.name, it.name, it.of.Results}); err != nil {
							return err
						}
					}
				}
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
