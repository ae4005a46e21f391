// Package synced is a store that counts in the process and exchanges counts
// with the other processes through Redis or PostgreSQL, at an interval.
//
// Use it if a decision must not wait for a server, and if a limit may be exceeded a little. Do
// not use it for a limit that must hold exactly, such as that of a login form: use stores/redis.
//
//	store, err := synced.New(redisbackend.New(client), synced.Config{Interval: 100 * time.Millisecond})
//	limiter, err := core.New(core.Config{Name: "api", Rules: rules, Store: store})
//
// A process decides by the backend's last total and the hits that it has counted since then. Every
// Config.Interval it pushes what it has added to each counter and receives the new totals with the
// answer. If an answer is lost, it pushes the same batch again, and the backend applies it once.
// With Interval 0 every decision is an exchange, and the limit is exact; a denial is two exchanges.
// With a negative Interval nothing is exchanged.
//
// Windows begin at multiples of their length since the Unix epoch, in every process. So
// limits must be fixed_window or sliding_window limits with Aligned set. The clocks of
// all processes must differ by much less than a window.
//
// When a limiter is opened, the store fetches the counters of the namespace once, so that the first
// decision on a key knows what other processes have counted. A counter that does not arrive within
// Config.Timeout, or is made later, comes with the key's first exchange. A key takes part in the
// three exchanges after each use. Grants, blocks and a reset of all keys are not supported.
//
// In a window, n processes together allow at most
//
//	quota + (n − 1) × what one process allows in an Interval and an exchange
//
// and never more than n × quota: docs/share/synced.md has measurements.
//
// While the backend does not answer, each process decides by its own counts, and its decisions are
// Degraded. It keeps unpushed hits until their window no longer counts. With Interval 0 a decision
// is an error instead; its hits stay charged if only the answer was lost. A process that is killed
// loses the hits of one Interval; Close pushes them. A backend that loses its data loses these
// counts. If two processes reset a key at the same moment, hits that were pushed in between can be
// forgotten too.
package synced
