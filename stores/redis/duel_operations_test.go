package redisstore_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
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
		if d.r.IntN(8) == 0 {
			cost := []int64{core.MaxQuota, core.MaxQuota + 1, 1 << 53, math.MaxInt64}[d.r.IntN(4)]
			for i := range pair[0].Items {
				pair[0].Items[i].Cost, pair[1].Items[i].Cost = cost, cost
			}
		}
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

// meddle is what others do to a value: they damage it, replace it or change its lifetime.
func (d *duel) meddle(name int) {
	ctx := d.t.Context()
	switch d.r.IntN(3) {
	case 0:
		d.persisted = name
		d.client.Persist(ctx, d.names[name])
		return
	case 1:
		d.client.PExpire(ctx, d.names[name], time.Duration(1+d.r.IntN(1e6))*time.Minute)
		return
	}
	value := []byte(d.held(d.names[name]).value)
	if len(value) == 0 || value[0] != 2 {
		value = []byte{2}
	}
	switch n := d.r.IntN(12); {
	case n == 0:
		d.forget(name)
		d.client.RPush(ctx, d.names[name], "a")
		d.goServer.set(d.names[name], []byte{0})
		return
	case n == 1:
		value = nil
	case n == 2:
		value = []byte{byte(d.r.IntN(20)), byte(d.r.IntN(256))}
	case n == 3:
		value = value[:d.r.IntN(len(value))]
	case n == 4:
		value = append(value, make([]byte, 1+d.r.IntN(10))...)
	case n == 5:
		value[d.r.IntN(len(value))] ^= 1 << d.r.IntN(8)
	case n == 6:
		for i := range 30 + d.r.IntN(6) { // about as many as are kept
			value = append(value, d.foreign(time.Hour+time.Duration(29*i%37)*time.Second)...)
		}
	case n < 10:
		value = d.edit(value)
	default:
		value = append(value, d.foreign(0)...)
	}
	if translated, fits := d.translators[d.ruleOf[name]].value(string(value)); fits {
		d.forget(name)
		d.client.Set(ctx, d.names[name], value, time.Hour)
		d.goServer.set(d.names[name], translated)
	}
}

// edit changes a number in one of a value's records to one at an edge, or the record's length.
func (d *duel) edit(value []byte) []byte {
	le := binary.LittleEndian
	var at []int
	for i := 1; i+11 <= len(value); i += 3 + int(unsigned(string(value[i:]), 3)) {
		at = append(at, i)
	}
	if len(at) == 0 {
		return value
	}
	i := at[d.r.IntN(len(at))]
	length := int(unsigned(string(value[i:]), 3))
	record := slices.Clone(value[i:min(len(value), i+3+length)])
	rest := value[i+len(record):]
	window := int64(time.Second / time.Microsecond)
	state := 10 + 1 + windowBytes
	if len(record) > state {
		window = int64(unsigned(string(record[11:]), windowBytes))
		if detailed(record[10]) {
			state += windowBytes
		}
	}
	switch size := len(record) - state; {
	case size < 4 || d.r.IntN(6) == 0: // its length
		record = append(record, make([]byte, 8)...)[:max(11, len(record)+d.r.IntN(9)-4)]
		copy(record, le.AppendUint32(nil, uint32(len(record)-3))[:3])
	case d.r.IntN(2) == 0 && size >= 7: // a time
		t := d.clock.Now().UnixMicro() + int64(d.r.IntN(6)-2)*window + int64(d.r.IntN(3)-1)
		copy(record[state+[]int{0, 0, max(0, size-7)}[d.r.IntN(3)]:], le.AppendUint64(nil, uint64(t))[:7])
	default: // a count, or the length of a calendar's window in seconds
		n := []uint32{0, 1, core.MaxQuota, core.MaxQuota + 1, 1<<32 - 1, uint32(window/1e6 + 97_200), uint32(window/1e6 + 97_201), 64, 65}[d.r.IntN(9)]
		copy(record[state+[]int{min(7, size-4), max(0, size-4), min(11, size-4)}[d.r.IntN(3)]:], le.AppendUint32(nil, n))
	}
	return slices.Concat(value[:i], record, rest)
}

// foreign returns a record that no program of the two has written. If last is not 0, it is
// needed that long, else for any time.
func (d *duel) foreign(last time.Duration) (record []byte) {
	now := d.clock.Now()
	window := int64(1+d.r.IntN(100)) * 1_000_000
	switch d.r.IntN(6) {
	case 0:
		window = d.r.Int64N(1 << 46)
	case 1:
		window = core.MaxWindow.Microseconds() + int64(d.r.IntN(3)-1)
	}
	expiry := now.Add(time.Duration(d.r.IntN(41)-20) * 10 * time.Second).UnixMicro()
	switch d.r.IntN(4) {
	case 0:
		expiry = now.UnixMicro() + window*d.r.Int64N(5) + int64(d.r.IntN(3)-1)
	case 1:
		expiry = now.Add(-slack).UnixMicro() + int64(d.r.IntN(3)-1)
	case 2:
		if d.r.IntN(4) == 0 {
			expiry = latest - d.r.Int64N(3)
		}
	}
	if last > 0 {
		expiry, window = now.Add(last).UnixMicro(), time.Hour.Microseconds()
	}
	kind := []byte{7, 8, 9, byte(d.r.IntN(256)), byte(d.r.IntN(256)), byte(d.r.IntN(16))}[d.r.IntN(6)]
	body := binary.LittleEndian.AppendUint64([]byte{kind}, uint64(window))[:7]
	switch d.r.IntN(12) {
	case 0, 1:
		body[0] = kindUsedUp
	case 2:
		body[0] = kindUsedUp
		body = append(body, 0)[:6+d.r.IntN(3)]
	case 3:
		body = body[:1+d.r.IntN(6)] // no window
	default:
		body = append(body, make([]byte, d.r.IntN(24))...)
	}
	record = binary.LittleEndian.AppendUint32(nil, uint32(7+len(body)))[:3]
	return append(binary.LittleEndian.AppendUint64(record, uint64(expiry))[:10], body...)
}

// advance lets time pass, or sets the clock back.
func (d *duel) advance() {
	l := d.rules[0][d.r.IntN(2)].Limits[0]
	steps := []time.Duration{0, 0, time.Microsecond, l.Window / 4, l.Window / 2, l.Window - time.Microsecond, l.Window, l.Window + time.Microsecond, l.Lockout.First, l.Lockout.First + l.Window, l.Lockout.Decay, l.Precision}
	for _, wait := range d.waits {
		if wait > 0 && wait < core.MaxRefill {
			steps = append(steps, wait, wait-time.Microsecond, wait, wait-time.Microsecond)
		}
	}
	by := steps[d.r.IntN(len(steps))].Truncate(time.Microsecond)
	// What one of the two has not written yet, such as that a window has ended, a clock
	// that is set back would bring to light.
	if d.r.IntN(8) == 0 && d.alike() {
		by = -by * time.Duration(1+d.r.IntN(3))
	}
	d.clock.Advance(by)
}

// alike reports whether the two have the same values, to the byte.
func (d *duel) alike() bool {
	for name := range d.names {
		value, _ := d.translators[d.ruleOf[name]].value(d.held(d.names[name]).value)
		if !bytes.Equal(value, d.goServer.values[d.names[name]].Value) {
			return false
		}
	}
	return true
}
