package main

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/floodgate-go/floodgate/bench/peers"
)

// budget is what we have promised ourselves of a value.
type budget struct {
	what, table, column string
	most                float64 // of our median; 0: none
	least               float64 // of our median; 0: none
	timesLeader         float64 // at least so many times as good as the best peer; 0: none
	share               float64 // at least this share of the INCR, at most if less is better; 0: none
	peer                string  // whose value it is; "": ours
	times               float64 // at most so many times our value in the same column of the table of; 0: none
	of                  string
}

const (
	redisRate    = "Decisions a second in Redis on the loopback interface"
	redisFar     = "Decisions a second in Redis 1 ms away"
	redisFarHalf = "Half of the decisions in Redis 1 ms away take no longer than"
	inProcess    = "A decision in the process, one caller"
	overNetHTTP  = "The middleware of net/http above the bare handler"
	overGin      = "The middleware of Gin above the bare handler"
	overEcho     = "The middleware of Echo above the bare handler"
	overFiber    = "The middleware of Fiber above the bare handler"
	allocsHTTP   = "Allocations of the middleware of net/http"
)

var budgets = []budget{
	{what: "a decision, one key", table: inProcess, column: "1 key", most: 75, timesLeader: 1},
	{what: "a decision, 1,000 keys", table: inProcess, column: "1,000 keys", most: 80, timesLeader: 1},
	{what: "a decision, 1,000,000 keys", table: inProcess, column: "1,000,000 keys", most: 300, timesLeader: 1},
	{what: "allocations of a decision", table: "Allocations of a decision in the process", column: "1,000 keys", most: 0.001},
	{what: "a quota of the key's own, 100,000 keys", table: inProcess, column: "100,000 keys", peer: peers.Quotas, times: 1.15, of: inProcess},
	{what: "acquire and release, one key", table: inProcess, column: "1 key", peer: peers.Slots, times: 2, of: inProcess},
	{what: "synced, 100,000 keys", table: inProcess, column: "100,000 keys", peer: peers.Synced, times: 1.3, of: inProcess},
	{what: "net/http middleware, allowed", table: overNetHTTP, column: "allowed", most: 350},
	{what: "without headers", table: overNetHTTP, column: "allowed", peer: peers.Plain, most: 150},
	{what: "denied", table: overNetHTTP, column: "denied", most: 600},
	{what: "allocations in net/http, allowed", table: allocsHTTP, column: "allowed", most: 2},
	{what: "allocations without headers", table: allocsHTTP, column: "allowed", peer: peers.Plain, most: 0.001},
	{what: "allocations, denied", table: allocsHTTP, column: "denied", most: 4},
	{what: "Gin middleware, allowed", table: overGin, column: "allowed", times: 1.2, of: overNetHTTP},
	{what: "Echo middleware, allowed", table: overEcho, column: "allowed", times: 1.2, of: overNetHTTP},
	{what: "Fiber middleware, allowed", table: overFiber, column: "allowed", times: 1.2, of: overNetHTTP},
	{what: "Echo middleware without headers, allowed", table: overEcho, column: "allowed", peer: peers.Plain, timesLeader: 1},
	{what: "Fiber middleware without headers, allowed", table: overFiber, column: "allowed", peer: peers.Plain, timesLeader: 1},
	{what: "live memory of a key", table: "Live memory of a key, at a million keys", column: "bytes", most: 40},
	{what: "the longest call while a million keys expire", table: "The longest call while a million keys expire", column: "µs", most: 100},
	{what: "Redis, 1 caller", table: redisRate, column: "1 caller", timesLeader: 0.95},
	{what: "Redis, 16 callers", table: redisRate, column: "16 callers", share: 1.4},
	{what: "Redis, 64 callers", table: redisRate, column: "64 callers", share: 2.5},
	{what: "Redis, 256 callers", table: redisRate, column: "256 callers", share: 3},
	{what: "Redis, 1 caller, 3 limits × 2 keys", table: redisRate, column: "1 caller", share: 0.6, peer: peers.Six},
	{what: "Redis, 64 callers, 3 limits × 2 keys", table: redisRate, column: "64 callers", share: 1.5, peer: peers.Six},
	{what: "Redis, 64 callers, 99 of 100", table: "99 of 100 decisions in Redis on the loopback interface take no longer than", column: "64 callers", share: 0.5},
	{what: "Redis, 256 callers, 99 of 100", table: "99 of 100 decisions in Redis on the loopback interface take no longer than", column: "256 callers", share: 0.5},
	{what: "the server's time for a decision, 1 caller", table: "Processor time of the server for a decision in Redis", column: "1 caller", most: 28},
	{what: "the server's time for a decision, 64 callers", table: "Processor time of the server for a decision in Redis", column: "64 callers", most: 5},
	{what: "Redis 1 ms away, 1 caller", table: redisFar, column: "1 caller", share: 1},
	{what: "Redis 1 ms away, 16 callers", table: redisFar, column: "16 callers", share: 1},
	{what: "Redis 1 ms away, 64 callers", table: redisFar, column: "64 callers", share: 1},
	{what: "Redis 1 ms away, 256 callers", table: redisFar, column: "256 callers", share: 1},
	{what: "Redis 1 ms away, 1 caller, half of the decisions", table: redisFarHalf, column: "1 caller", share: 1.15},
	{what: "Redis 1 ms away, 16 callers, half of the decisions", table: redisFarHalf, column: "16 callers", share: 1.15},
	{what: "Redis 1 ms away, 64 callers, half of the decisions", table: redisFarHalf, column: "64 callers", share: 1.15},
	{what: "Redis 1 ms away, 256 callers, half of the decisions", table: redisFarHalf, column: "256 callers", share: 1.15},
	{what: "commands of a decision in Redis", table: "Commands of a decision in Redis", column: "commands", most: 1},
	{what: "admitted in the process", table: "Admitted of 2,000 at once, at a limit of 100", column: "in the process", most: 100, least: 100},
	{what: "admitted in Redis by 4 instances", table: "Admitted of 2,000 at once, at a limit of 100", column: "Redis, 4 instances", most: 100, least: 100},
}

// verdict says whether a budget was met, and by how much.
func (b budget) verdict(tables []Table) (text string, met, measured bool) {
	for i := range tables {
		t := &tables[i]
		row := t.row(cmp.Or(b.peer, t.Ours))
		if t.Title != b.table || row == nil {
			continue
		}
		cell := row.Cells[b.column]
		if cell == nil || len(cell.Values) == 0 {
			return "", false, false
		}
		ours := cell.median()
		met = true
		check := func(ok bool, format string, args ...any) {
			word := "met"
			if !ok {
				word, met = "missed", false
			}
			if text != "" {
				text += "; "
			}
			text += word + ": " + fmt.Sprintf(format, args...)
		}
		if b.most > 0 {
			check(ours <= b.most || t.number(ours) == t.number(b.most), "%s %s, at most %s", t.number(ours), t.Unit, t.number(b.most))
		}
		if b.least > 0 {
			check(ours >= b.least, "%s %s, at least %s", t.number(ours), t.Unit, t.number(b.least))
		}
		if b.timesLeader > 0 {
			if peer, best := t.bestPeer(b.column); peer != "" {
				times := best / ours
				if !t.Lower {
					times = ours / best
				}
				check(times >= b.timesLeader, "%s times as good as %s, at least %s", strconv.FormatFloat(times, 'f', 2, 64), peer, strconv.FormatFloat(b.timesLeader, 'f', -1, 64))
			}
		}
		if reference, ok := ourMedian(tables, b.of, b.column); ok && b.times > 0 {
			check(ours <= b.times*reference, "%.2f times %s %s, at most %s", ours/reference, t.number(reference), t.Unit, strconv.FormatFloat(b.times, 'f', -1, 64))
		}
		if row := t.row(bareINCR.Name); b.share > 0 && row != nil && row.Cells[b.column] != nil {
			share := ours / row.Cells[b.column].median()
			if t.Lower {
				check(share <= b.share, "%.0f %% of a bare INCR, at most %.0f %%", 100*share, 100*b.share)
			} else {
				check(share >= b.share, "%.0f %% of a bare INCR, at least %.0f %%", 100*share, 100*b.share)
			}
		}
		return text, met, true
	}
	return "", false, false
}

// ourMedian returns our median of a table's column, and whether it was measured.
func ourMedian(tables []Table, title, column string) (float64, bool) {
	for i := range tables {
		t := &tables[i]
		row := t.row(t.Ours)
		if t.Title != title || row == nil {
			continue
		}
		if cell := row.Cells[column]; cell != nil && len(cell.Values) > 0 {
			return cell.median(), true
		}
	}
	return 0, false
}

// bestPeer returns the best of the others.
func (t *Table) bestPeer(column string) (string, float64) {
	others := *t
	others.Rows = nil
	for _, r := range t.Rows {
		if r.Peer != t.Ours {
			others.Rows = append(others.Rows, r)
		}
	}
	return others.leader(column)
}
