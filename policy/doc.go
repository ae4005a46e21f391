// Package policy applies limits that are written in a file, so that an operator
// can change them without a build.
//
//	set, err := policy.Watch(ctx, "limits.yaml", policy.WithUser(currentUser), policy.WithTier(planOfUser))
//	http.ListenAndServe(addr, httplimit.Middleware(set)(app))
//
// A [Set] is a core.Checker: one Middleware of any adapter applies the file to a whole application.
// [Watch] reads the file again when it changes. A file with a mistake is rejected, with the place of
// each mistake, and the former file stays in force.
//
// # A file
//
// A file is YAML or JSON, without anchors and aliases. Unknown fields are errors.
//
//	name: api                       # of the counters; default: policies
//	client-ip:                      # default: the connection's peer
//	  trusted-proxies: [10.0.0.0/8]
//	  header: X-Forwarded-For
//	store:                          # without it, every process counts for itself
//	  redis: {address: redis:6379, password: {env: REDIS_PASSWORD}}
//	  on-failure: local             # while the store does not answer
//	policies:
//	  - name: by-method
//	    match: {paths: [/api/**]}
//	    key: method                 # without it, all requests share a counter
//	    limits: 3/6s                # or {maximumRequests: 3, timePeriodInMilliseconds: 6000}
//	    headers: x-milliseconds     # the default is off
//	  - name: by-client
//	    key: user                   # WithUser returns it
//	    fallback: ip                # for requests without a user
//	    tiers: {default: 100/m, paid: [1000/m, 20000/d]} # WithTier chooses
//	    quotas: {ann: 5000/m}       # of single keys; WithQuota has those of a database
//	    deny: [203.0.113.0/24]
//	  - name: planned
//	    key: ip
//	    limits: 10/s token_bucket burst=20
//	    dry-run: true               # denies nothing
//
// The pages in docs/file describe all fields, paths and expressions. Limits are written as
// core.ParseLimits reads them.
//
// # Promises
//
// A policy has one key. For several keys, write several policies: all that apply to a request must
// allow it, or it is charged to none. No spelling of a path gets around a policy: if routers read a
// path in several ways, a policy applies if its pattern matches any of them. A request whose key,
// cost or condition cannot be read is denied with 400 or counted, never ignored. An expression
// takes at most about 30 milliseconds.
//
// Policies count in the store of the file, for all processes together, or with counting: local in
// each process. If policies of both kinds apply to a request, it is charged in the process first, and
// refunded there if the store denies it. A file names Redis or memcached: the program gives any
// other store with WithStore. Lists of denied addresses need no store.
//
// When the file changes, counters keep their counts: see [Set.Replace].
package policy
