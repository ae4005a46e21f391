package redisstore_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
)

// batches returns a batch for each store.
func (d *duel) batches(program int) (pair [2]*core.Batch) {
	cost := d.r.Int64N(4)
	if limits := d.rules[program][0].Limits; d.r.IntN(4) == 0 {
		cost = d.r.Int64N(limits[0].Quota + 2)
	}
	var items []core.Item
	for rule, some := range d.rules[program] {
		for key := range 2 {
			if d.r.IntN(4) > 0 {
				continue
			}
			it := core.Item{Rule: rule, Key: fmt.Append(nil, key), Cost: cost, Quotas: anyQuotas(d.r, some.Limits)}
			items = append(items, it)
		}
	}
	d.r.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	for i := range pair {
		pair[i] = &core.Batch{Items: slices.Clone(items)}
		for j := range items {
			pair[i].Items[j].Results = make([]core.Result, len(d.rules[program][items[j].Rule].Limits))
		}
	}
	return pair
}

// operate does one operation, with both stores.
func (d *duel) operate() {
	program := d.r.IntN(2)
	pair := d.batches(program)
	if len(pair[0].Items) == 0 {
		return
	}
	ctx, errs, decided := d.t.Context(), [2]error{}, true
	kind := d.r.IntN(24)
	// What a clock that was wrong has written is put right by the next look in both
	// stores, and by these operations in the script only.
	if pair[0].Items[0].Cost == 0 || kind == 7 || kind == 9 || kind == 10 {
		_ = d.look(program)
		d.peek(program, pair) // the quotas of the requests may put right what those of the rules leave
	}
	was := maps.Clone(d.goServer.values)
	do := func(what string, op core.Op) {
		d.t.Helper()
		d.what = what
		for i, b := range d.bounds[program] {
			errs[i] = storetest.Do(ctx, b, op, pair[i])
		}
	}
	switch n := kind; {
	case n < 3:
		do("peek", core.OpPeek)
	case n < 6:
		blocked := d.look(program)
		d.costOne(pair)
		do("charge", core.OpCharge)
		for i, it := range pair[0].Items {
			if blocked[nameOf(it)] { // the script says so, and Go does not
				copy(pair[1].Items[i].Results, it.Results)
			}
		}
	case n == 6:
		d.costOne(pair)
		do("grant", core.OpGrant)
	case n == 7:
		pair[0].For = time.Duration(d.r.IntN(3)*1500) * time.Millisecond
		pair[1].For = pair[0].For
		do("block", core.OpBlock)
	case n == 8 && d.r.IntN(3) == 0:
		do("reset", core.OpReset)
	case n < 14:
		d.what = "refund"
		var batch *core.Batch
		if program, batch = d.refund(); batch == nil {
			return
		}
		pair = [2]*core.Batch{batch, batch}
	default:
		do("take", core.OpTake)
		if pair[0].Allowed && errs[0] == nil {
			d.charged = append(d.charged, charge{program, pair})
		}
	}
	if (errs[0] == nil) != (errs[1] == nil) {
		d.fatal(fmt.Sprintf("Go: %v\nscript: %v", errs[0], errs[1]))
	}
	if errs[0] == nil && !reflect.DeepEqual(pair[0], pair[1]) {
		d.fatal(fmt.Sprintf("program %d\nGo     %+v\nscript %+v", program, pair[0], pair[1]))
	}
	d.waits = d.waits[:0]
	for _, it := range pair[0].Items {
		for _, r := range it.Results {
			d.waits = append(d.waits, r.RetryAfter, r.ResetAfter, r.MoreAfter)
		}
	}
	d.wrote = d.what != "peek" && (d.what != "take" || pair[0].Allowed)
	for _, it := range pair[0].Items {
		name := nameOf(it)
		if errs[0] != nil { // of several keys, not the same ones may have been changed
			d.forget(name)
			continue
		}
		d.compare(program, name, was[d.names[name]], decided)
	}
}

// look makes a program look at all keys, without limits: only a block denies it. It
// returns which names are blocked.
func (d *duel) look(program int) (blocked [duelNames]bool) {
	for _, b := range d.bounds[program] {
		batch := new(core.Batch)
		for name, rule := range d.ruleOf {
			n := len(d.rules[program][rule].Limits)
			batch.Items = append(batch.Items, core.Item{Rule: rule, Key: fmt.Append(nil, name%2), Cost: 1, Quotas: slices.Repeat([]int64{core.Unlimited}, n), Results: make([]core.Result, n)})
		}
		if err := storetest.Do(d.t.Context(), b, core.OpPeek, batch); err != nil {
			d.fatal(err.Error())
		}
		for name := range batch.Items {
			blocked[name] = !batch.Items[name].Results[0].Allowed
		}
	}
	return blocked
}

// peek makes a program look at the keys of an operation, with its quotas.
func (d *duel) peek(program int, pair [2]*core.Batch) {
	for i, b := range d.bounds[program] {
		batch := &core.Batch{Items: slices.Clone(pair[i].Items)}
		for j := range batch.Items {
			it := &batch.Items[j]
			it.Cost, it.Results = 1, make([]core.Result, len(it.Results))
		}
		if err := storetest.Do(d.t.Context(), b, core.OpPeek, batch); err != nil {
			d.fatal(err.Error())
		}
	}
}

// costOne makes each cost 1 or more.
func (d *duel) costOne(pair [2]*core.Batch) {
	for _, batch := range pair {
		for i := range batch.Items {
			batch.Items[i].Cost = max(1, batch.Items[i].Cost)
		}
	}
}

// nameOf returns the number of an item's name.
func nameOf(it core.Item) int { return 2*it.Rule + int(it.Key[0]-'0') }

// refund gives back a part of what was charged, to the program that has charged it.
func (d *duel) refund() (program int, batch *core.Batch) {
	if len(d.charged) == 0 {
		return 0, nil
	}
	i := d.r.IntN(len(d.charged))
	c := d.charged[i]
	d.charged = slices.Delete(d.charged, i, i+1)
	for j := range c.pair[0].Items {
		part := d.r.Int64N(c.pair[0].Items[j].Cost + 1)
		for i := range c.pair {
			c.pair[i].Items[j].Cost = part
		}
	}
	if d.r.IntN(2) == 0 { // of a time at an edge
		l := d.rules[c.program][c.pair[0].Items[0].Rule].Limits[0]
		edge := l.Window.Microseconds()*int64(d.r.IntN(3)-1) + int64(d.r.IntN(3)-1)
		for i := range c.pair {
			c.pair[i].Items[0].At += edge
		}
	}
	for i, b := range d.bounds[c.program] {
		if err := storetest.Do(d.t.Context(), b, core.OpRefund, c.pair[i]); err != nil {
			d.fatal(err.Error())
		}
	}
	return c.program, c.pair[0]
}

func (d *duel) fatal(text string) {
	d.t.Helper()
	d.t.Fatalf("seed %d, step %d, %s, time %d\nprograms %+v\n%s", d.seed, d.step, d.what, d.clock.Now().UnixMicro(), d.rules, text)
}
