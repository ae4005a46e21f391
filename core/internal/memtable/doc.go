// Package memtable holds the counters of the in-process store: the states of
// keys, in tables without pointers, in shards with a lock each. It bounds the
// number of keys and chooses which key to evict. Package core's Memory is a
// store over it, and documents what it promises.
package memtable
