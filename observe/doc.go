// Package observe counts what limiters decide, by limiter, rule, limit and result. The packages
// otelobserve and promobserve, which are modules of their own, export these counts to OpenTelemetry
// and Prometheus; slogobserve logs denials. A program that only reads the numbers itself uses
// [Counts] alone:
//
//	counts := observe.NewCounts()
//	limiter, err := core.New(core.Config{Rules: rules, Observer: counts})
//	…
//	for _, l := range counts.Read() {
//		for _, n := range l.Limits {
//			fmt.Println(l.Name, n.Rule, n.Limit, n.Allowed, n.Denied)
//		}
//	}
//
// Counters exist for each limit, never for a key: traffic adds none.
package observe
