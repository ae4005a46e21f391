// Package live is a web page for operators: it shows the decisions of the limiters of this process,
// and can unblock and ban keys.
//
// For each limiter and rule the page shows how many requests are allowed and denied each second,
// which keys are denied most often and which are nearest to their limit, and whether the store
// answers. An operator can look at one key, unblock it, ban it for a time, and forget the failures
// of a login.
//
//	page, err := live.New(live.Config{Authorize: mayChange})
//	limiter, err := core.New(core.Config{Name: "api", Observer: page, Rules: rules})
//	page.Manage(limiter)
//	http.Handle("/admin/limits", onlyOperators(page))
//
// # Who may see it
//
// The page does no authentication: mount it behind the application's own. Without
// [Config.Authorize] nothing can be changed, but everyone who reaches the page can look at keys.
// Another site gets no counts and can change nothing ([http.CrossOriginProtection]). Each change is
// logged.
//
// # Several processes
//
// Each process shows its own decisions. The remaining hits and the blocks are in the store: if the
// store is shared, they hold for all processes.
//
// # Memory
//
// The page keeps two minutes of counts for each rule, and at most 2048 denied keys and 1024 keys
// near their limit for each limiter, of 256 bytes each, whatever the traffic is. The page keeps the
// limiters of all names until it is closed: do not make names from values of requests. The counts
// of rules are exact. Those of keys are halved each minute, so that keys that are denied now come
// first. If there are more denied keys than the page keeps, the count of a key may be too small.
package live
