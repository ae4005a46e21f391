package main

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/bench/peers"
)

// admission counts what is allowed of 2,000 requests at once, at a limit of
// 100.
func admission(e effort, p peers.Peer) ([]Table, error) {
	if p.Name == bareINCR.Name || peers.IsExtra(p.Name) {
		return nil, nil
	}
	t := Table{
		Title: "Admitted of 2,000 at once, at a limit of 100", Ours: "floodgate", Exact: 100,
		Text: "In the process, and in Redis by one and by four instances with clients of their own.",
	}
	limit := peers.Limit{Quota: 100, Window: time.Hour}
	for range e.reps {
		if p.Local != nil {
			allow, end := p.Local(limit)
			cell := t.cell(p, "in the process")
			cell.Values = append(cell.Values, allowed([]peers.Allow{allow}))
			end()
		}
		if p.Redis == nil {
			continue
		}
		for column, instances := range map[string]int{"Redis, 1 instance": 1, "Redis, 4 instances": 4} {
			n, err := allowedInRedis(p, limit, instances)
			if err != nil {
				return nil, err
			}
			cell := t.cell(p, column)
			cell.Values = append(cell.Values, n)
		}
	}
	if len(t.Rows) == 0 {
		return nil, nil
	}
	t.order("in the process", "Redis, 1 instance", "Redis, 4 instances")
	return []Table{t}, nil
}

func allowedInRedis(p peers.Peer, limit peers.Limit, instances int) (float64, error) {
	server, err := startRedis()
	if err != nil {
		return 0, err
	}
	defer server.stop()
	var allows []peers.Allow
	for range instances {
		c := redis.NewClient(&redis.Options{Addr: server.addr, PoolSize: 32, PoolTimeout: 30 * time.Second})
		defer c.Close() //nolint:errcheck // nothing depends on it
		allows = append(allows, p.Redis(c, limit))
	}
	return allowed(allows), nil
}

func allowed(instances []peers.Allow) float64 {
	var n atomic.Int64
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range 2000 {
		wg.Go(func() {
			<-begin
			if instances[i%len(instances)]("key") {
				n.Add(1)
			}
		})
	}
	close(begin)
	wg.Wait()
	return float64(n.Load())
}
