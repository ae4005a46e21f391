// Package swapstore makes a [core.Store] of any database that keeps values
// under names and can replace a value only if no other writer has replaced it
// in between: a database with compare-and-swap, or with a version for each row.
// It implements all of core.Store with the same arithmetic as the other stores.
//
// A take costs one load and one swap for each key of a rule, and more if other
// writers are faster. For Redis and memcached use stores/redis and
// stores/memcached.
//
//	store, err := swapstore.New(mySwapper{db}, swapstore.Config{})
//	limiter, err := core.New(core.Config{Name: "jobs", Rules: rules, Store: store})
package swapstore
