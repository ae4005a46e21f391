package redisstore_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// held is a value that the server has.
type held struct {
	value  string
	exists bool
	left   time.Duration // of its lifetime; -1: no end
}

func (d *duel) held(name string) (h held) {
	ctx := d.t.Context()
	pipe := d.client.Pipeline()
	kind, left := pipe.Type(ctx, name), pipe.PTTL(ctx, name)
	value := pipe.Get(ctx, name)
	_, _ = pipe.Exec(ctx) // a value of another type is an error of GET
	h.exists, h.left = kind.Val() != "none", left.Val()
	if h.value = value.Val(); kind.Val() == "list" {
		h.value = "\x00"
	}
	return h
}

// slack is how long the script keeps a value that is not needed any more.
const slack = time.Minute

// compare compares what the two have stored under a name, and what is left of its
// lifetime if it was written or had none.
func (d *duel) compare(program, name int, was swapstore.Value, decided bool) {
	d.t.Helper()
	now := d.clock.Now().UnixMicro()
	t := d.translators[d.ruleOf[name]]
	h := d.held(d.names[name])
	script, fits := t.value(h.value)
	if !fits {
		d.fatal(fmt.Sprintf("the script has stored %x", h.value))
	}
	if !h.exists {
		script = []byte{2}
	}
	is, found := d.goServer.values[d.names[name]]
	if !found {
		is.Value = []byte{2}
	}
	inGo, inScript := d.records(t, is.Value, now), d.records(t, script, now)
	kept := inScript
	if !h.exists { // the server may have dropped what Go keeps without end
		kept = inGo
	}
	end := int64(0)
	for _, r := range kept {
		end = max(end, r.end)
	}
	want := time.Duration(end-now)*time.Microsecond + slack
	timed := (!h.exists || h.value != "" && h.value[0] == 2) && end > 0
	if timed && want < 10*time.Second { // the server is about to drop it, or has done so
		d.forget(name)
		return
	}
	if a, b := meanings(inGo), meanings(inScript); a != b {
		d.fatal(fmt.Sprintf("key %s\nGo has     %s\nscript has %s", d.names[name], a, b))
	}
	newer := h.value != "" && h.value[0] > 2 && h.value[0] <= 15
	if decided && h.exists && h.left == -1 && !newer {
		d.fatal(fmt.Sprintf("%x is kept for ever", h.value))
	}
	// A look may write, too: if Go finds a time to put right, which may be another than the script's.
	written := is.Version != nil && is.Version != was.Version && d.wrote
	healed := decided && d.persisted == name
	for _, r := range inScript {
		if written && r.limit >= 0 && r.needed >= 0 && r.end != r.needed && d.owns(program, d.ruleOf[name], r.limit) {
			d.fatal(fmt.Sprintf("%s: it is needed until %d, and the script says %d", r.text, r.needed, r.end))
		}
		if r.text == "" || r.limit < 0 || r.needed < 0 { // how long the value is needed for it is known if it is written
			healed = false
		}
		// What another limit's clock has written before it was set back is kept for three windows at most.
		if r.limit >= 0 && r.end-now > 3*t.ids[r.limit].Window {
			healed = false
		}
	}
	if late := want - h.left; h.exists && timed && (written || healed) && (late < -7*time.Second || late > 15*time.Second) {
		d.fatal(fmt.Sprintf("key %s, %x, %q: it is kept for %v, want %v", d.names[name], h.value, meanings(inScript), h.left, want))
	}
}

func (d *duel) records(t translator, value []byte, now int64) []goRecord {
	d.t.Helper()
	all, err := t.records(value, now)
	if err != nil {
		d.fatal(err.Error())
	}
	return all
}

// meanings returns the texts of the records that mean something, or may for others.
func meanings(all []goRecord) (text string) {
	for _, r := range all {
		if r.text != "" {
			text += r.text + "\n"
		}
	}
	return text
}

// owns reports whether a program has one of the limits of a rule.
func (d *duel) owns(program, rule, limit int) bool {
	return slices.Contains(newTranslator(d.rules[program][rule].Limits).ids, d.translators[rule].ids[limit])
}

// forget takes a key's value away.
func (d *duel) forget(name int) {
	d.client.Del(d.t.Context(), d.names[name])
	delete(d.goServer.values, d.names[name])
}
