package main

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/bench/peers"
)

// bareINCR is what a decision in Redis cannot be faster than: it counts, and
// decides nothing.
var bareINCR = peers.Peer{
	Name: "INCR, which limits nothing", Module: "github.com/redis/go-redis/v9",
	Redis: func(c *redis.Client, _ peers.Limit) peers.Allow {
		ctx := context.Background()
		return func(key string) bool { return c.Incr(ctx, "incr:"+key).Err() == nil }
	},
}

// inRedis measures decisions in Redis.
func inRedis(e effort, p peers.Peer) ([]Table, error) {
	if p.Redis == nil {
		return nil, nil
	}
	server, err := startRedis()
	if err != nil {
		return nil, err
	}
	defer server.stop()
	far, err := delayed(server.addr, time.Millisecond)
	if err != nil {
		return nil, err
	}
	defer far.stop()
	var tables []Table
	busy := Table{
		Title: "Processor time of the server for a decision in Redis", Unit: "µs", Lower: true, Ours: "floodgate",
		Text: "As INFO cpu tells it, on the loopback interface.",
	}
	for _, place := range []struct{ name, addr string }{{"on the loopback interface", server.addr}, {"1 ms away", far.addr}} {
		perSecond := Table{
			Title: "Decisions a second in Redis " + place.name, Unit: "a second", Ours: "floodgate",
			Text: "Callers go round among 1,000 keys that are within their limits; the client has a connection for each, 64 at the most.",
		}
		p50 := Table{Title: "Half of the decisions in Redis " + place.name + " take no longer than", Unit: "µs", Lower: true, Ours: "floodgate"}
		p99 := Table{Title: "99 of 100 decisions in Redis " + place.name + " take no longer than", Unit: "µs", Lower: true, Ours: "floodgate"}
		for _, callers := range e.callers {
			column := fmt.Sprint(callers, " callers")
			if callers == 1 {
				column = "1 caller"
			}
			got := load(place.addr, p, callers, e.redis, ample)
			values := map[*Table]float64{&perSecond: got.perSecond, &p50: got.p50, &p99: got.p99}
			if place.addr == server.addr {
				values[&busy] = got.server
			}
			for table, value := range values {
				cell := table.cell(p, column)
				cell.Values = append(cell.Values, value)
			}
		}
		tables = append(tables, perSecond, p50, p99)
	}
	tables = append(tables, busy)
	if p.Name != bareINCR.Name && p.Name != peers.Six && !peers.IsExtra(p.Name) {
		refused := Table{
			Title: "Refusals a second of one key over its limit, in Redis on the loopback interface", Unit: "a second", Ours: "floodgate",
			Text: "Ours knows from the first refusal on, without asking again, that the key has to wait.",
		}
		got := load(server.addr, p, 16, e.redis, peers.Limit{Quota: 1, Window: 24 * time.Hour})
		cell := refused.cell(p, "16 callers")
		cell.Values = append(cell.Values, got.perSecond)
		tables = append(tables, refused)
	}
	commands := Table{Title: "Commands of a decision in Redis", Lower: true, Ours: "floodgate", Decimals: 2, Text: "As the client sends them, each of a pipeline; and how often it waits for an answer."}
	sent, waits := count(server.addr, p)
	for column, value := range map[string]float64{"commands": sent, "round trips": waits} {
		cell := commands.cell(p, column)
		cell.Values = append(cell.Values, value)
	}
	commands.order("commands", "round trips")
	return append(tables, commands), nil
}

// loaded is what a load has given: decisions a second, and the median and the
// 99th percentile of what a decision took, and the server's processor time for
// one, in microseconds.
type loaded struct{ perSecond, p50, p99, server float64 }

// load has callers decide for a time.
func load(addr string, p peers.Peer, callers int, long time.Duration, l peers.Limit) loaded {
	client := redis.NewClient(&redis.Options{
		Addr: addr, PoolSize: min(64, max(callers, 2*runtime.GOMAXPROCS(0))),
		PoolTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, ContextTimeoutEnabled: true,
	})
	defer client.Close() //nolint:errcheck // nothing depends on it
	client.FlushAll(context.Background())
	allow := p.Redis(client, l)
	keys, _ := keysOf(1000)
	if l.Quota == 1 {
		keys = keys[:1]
	}
	var wg sync.WaitGroup
	var warm atomic.Int64
	all := make([][]time.Duration, callers)
	begin := make(chan struct{})
	var end time.Time
	for i := range callers {
		wg.Go(func() {
			for n := range 4 { // connections are made, scripts loaded
				allow(keys[(i+n)%len(keys)])
			}
			warm.Add(1)
			<-begin
			for n := i; ; n++ {
				before := time.Now()
				if before.After(end) {
					return
				}
				allow(keys[n%len(keys)])
				all[i] = append(all[i], time.Since(before))
			}
		})
	}
	for warm.Load() < int64(callers) {
		time.Sleep(time.Millisecond)
	}
	runtime.GC()
	spent := processorTime(client)
	begun := time.Now()
	end = begun.Add(long)
	close(begin)
	wg.Wait()
	took := time.Since(begun)
	spent = processorTime(client) - spent
	sorted := slices.Sorted(slices.Values(slices.Concat(all...)))
	at := func(share float64) float64 { return float64(sorted[int(share*float64(len(sorted)-1))]) / 1000 }
	n := float64(len(sorted))
	return loaded{perSecond: n / took.Seconds(), p50: at(0.5), p99: at(0.99), server: spent / n}
}

// processorTime returns the processor time that the server has used, in
// microseconds.
func processorTime(client *redis.Client) float64 {
	var sum float64
	for line := range strings.Lines(client.Info(context.Background(), "cpu").Val()) {
		for _, name := range []string{"used_cpu_sys:", "used_cpu_user:"} {
			if text, found := strings.CutPrefix(line, name); found {
				seconds, _ := strconv.ParseFloat(strings.TrimSpace(text), 64)
				sum += seconds * 1e6
			}
		}
	}
	return sum
}

// counting counts what a client sends.
type counting struct{ commands, waits atomic.Int64 }

func (c *counting) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *counting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.commands.Add(1)
		c.waits.Add(1)
		return next(ctx, cmd)
	}
}

func (c *counting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.commands.Add(int64(len(cmds)))
		c.waits.Add(1)
		return next(ctx, cmds)
	}
}

func count(addr string, p peers.Peer) (commands, waits float64) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close() //nolint:errcheck // nothing depends on it
	c := new(counting)
	client.AddHook(c)
	allow := p.Redis(client, ample)
	allow("k")
	c.commands.Store(0)
	c.waits.Store(0)
	const n = 100
	for range n {
		allow("k")
	}
	return float64(c.commands.Load()) / n, float64(c.waits.Load()) / n
}
