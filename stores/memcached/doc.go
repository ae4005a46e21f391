// Package memcachedstore counts in memcached: all instances of an application
// share one limit, exactly, by memcached's compare-and-swap.
//
//	store, err := memcachedstore.New([]string{"10.0.0.1:11211"})
//	limiter, err := core.New(core.Config{Name: "api", Rules: rules, Store: store})
//
// # What is stored
//
// All limits of one key of one rule are one item, whose name
// [core.StoreRule.StoredKey] returns. The name has only bytes that memcached
// accepts, at most 200 of them, and shows nothing that a client sent. A charge
// reads the item and swaps it for its successor, or adds it. If another writer
// has changed the item in between, the charge is tried again, at random
// intervals that grow, within the [Timeout]. Within a process, callers that
// want the same key take turns, so that only instances collide. The keys of a
// decision are read together and swapped one by one; if a later one turns out
// to be denied, the earlier ones are refunded.
//
// An item may also hold the states of limits that another program, or another
// version of this one, has under the same limiter and rule. A write keeps those
// states until they expire, so that each program admits exactly its own quotas.
// It keeps at most 32 of them and 256 KiB. If there are more, those that expire
// first are dropped.
//
// A value that this package has not written, or that is damaged, counts as none
// and is replaced by the next charge, or it denies its key for the shortest
// window of its rule: see [core.Config]. A value written by a later version
// of this package is never replaced: it denies its key until it expires.
//
// # Time
//
// memcached has no clock that can be asked, so the application's clock decides.
// The clocks of all instances should agree: docs/choosing-a-limit.md has what is
// guaranteed if they differ by less than one window. If they differ by a window or
// more, limits do not hold, and the log says so once. Items live some seconds longer than
// their windows, rounded up, so that a window never ends early because its item
// has expired. memcached keeps nothing for more than 30 days: a limit whose
// hits count for longer (core.Limit.Lifetime), such as a sliding window of more
// than 15 days, is a configuration error.
//
// # What it forgets
//
// A memcached that is restarted forgets everything, and a full one evicts
// items: give counters a server of their own, with enough memory (an item takes
// about 150 bytes). Several servers share the keys by a hash of the name modulo
// the number of servers: if the list changes, most keys move to another server,
// and their counters start again at 0. Around such a change at most two
// windows' worth is admitted.
//
// If a reply is lost, it is not known whether the charge was made: the
// operation returns an error, and the charge is never made twice. The keys of a
// batch are charged one after another: if a process is killed between two of
// them, the first stays charged although the request was not admitted. If
// memcached does not answer, package
// github.com/floodgate-go/floodgate/stores/resilient can decide without it.
package memcachedstore
