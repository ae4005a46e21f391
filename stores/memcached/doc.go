// Package memcachedstore counts in memcached: all instances of an application
// share one limit, exactly, by memcached's compare-and-swap.
//
//	store, err := memcachedstore.New([]string{"10.0.0.1:11211"})
//	limiter, err := core.New(core.Config{Name: "api", Rules: rules, Store: store})
//
// # What is stored
//
// All limits of one key of one rule are one item, whose name [core.StoredKey]
// makes: never a byte that memcached refuses, never above 200 bytes, and nothing
// of what a client sends legible in it. A charge reads the item and swaps it for
// its successor, or adds it, unless somebody else has come in between; then it
// tries again, at random intervals that grow, within the [Timeout]. Within a
// process, those who want the same key take turns, so that only instances get in
// each other's way. The keys of a decision are read together and swapped one by
// one; if a later one turns out to be denied, the earlier ones are refunded.
//
// An item may also hold the states of limits that another program, or another
// version of this one, has under the same limiter and rule. A write keeps those
// until they expire, so that each program admits exactly its own quotas. It keeps
// 32 of them and 256 KiB at most, and drops those first that expire first.
//
// A value that is not one of ours, or not as it was written, counts as none and is
// replaced by the next charge, or denies its key for the shortest window of its
// rule: see [Unreadable]. A value that a later version of this package has written
// is never replaced: it denies its key until it expires.
//
// # Time
//
// memcached has no clock that could be asked: the application's decides. The
// clocks of all instances should agree: README says what is promised if they
// differ by less than one window. Items live some seconds longer than their
// windows, rounded up, so that a window never ends early because its item has
// gone. memcached keeps nothing for more than 30 days: limits whose hits can mean
// something for longer (core.Guarantees.Lifetime: a sliding window of more than 15
// days, say) are a configuration error.
//
// # What it forgets
//
// A memcached that is restarted has forgotten everything, and so has one that
// needs the room: give counters a server of their own, with enough memory (an
// item takes about 150 bytes). Several servers share the keys by a hash of the
// name modulo their number: when the list changes, most keys move to another
// server, and their counters begin anew. What is admitted around that is at most
// what two windows admit.
//
// A reply that is lost leaves open whether the charge was made: the answer is an
// error, and the charge is never made twice. The keys of a batch are charged one
// after the other: if a process is killed between two of them, the first stays
// charged although the request was not admitted. Package
// github.com/floodgate-go/floodgate/stores/resilient decides meanwhile.
package memcachedstore
