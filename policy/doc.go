// Package policy applies limits that are written in a file, so that an operator
// can change them without a build.
//
//	set, err := policy.Watch(ctx, "limits.yaml", policy.WithUser(currentUser), policy.WithTier(planOfUser))
//	http.ListenAndServe(addr, httplimit.Middleware(set)(app))
//
// A [Set] is a core.Checker: the Middleware of every adapter takes it, and a single
// one applies the file to a whole application. [Watch] reads the file again when it
// changes. A file with a mistake is rejected, with the place of each mistake, and the
// former file stays in force. If the limits never change without a build, write them
// in Go: see package core.
//
// # A file
//
// A file is YAML or JSON. Unknown fields are errors.
//
//	name: api                       # of the counters in a store; the default is policies
//	client-ip:                      # the default is the peer of the connection
//	  trusted-proxies: [10.0.0.0/8]
//	  header: X-Forwarded-For
//	store:                          # without it, every process counts for itself
//	  redis: {address: redis:6379, password: {env: REDIS_PASSWORD}}
//	  on-failure: local             # how to decide while the store does not answer
//	  remember-denials: true        # false: ask the store about each denied request too
//	policies:
//	  - name: by-method
//	    match: {paths: [/api/**]}
//	    key: method                 # without it, all requests share a counter
//	    limits: 3/6s                # or {maximumRequests: 3, timePeriodInMilliseconds: 6000}
//	    headers: x-milliseconds     # the default is off
//	  - name: by-client
//	    key: user                   # WithUser says who that is
//	    fallback: ip                # for requests without a user
//	    tiers: {default: 100/m, paid: [1000/m, 20000/d]} # WithTier chooses
//	    deny: [203.0.113.0/24]
//	  - name: planned
//	    key: ip
//	    limits: 10/s token_bucket burst=20
//	    dry-run: true               # decide, count and report, deny nothing
//
// [Reference] describes all fields, and [Schema] is a JSON Schema for editors. Limits
// are written as core.ParseLimits reads them.
//
// # Quotas of single keys
//
// The field quotas names a table of quotas, which take the place of those in limits:
//
//	policies:
//	  - name: api
//	    key: user
//	    fallback: ip
//	    limits: [100/m, 2000/d]
//	    quotas: {file: customers.quotas} # or {source: customers}: WithQuotas gives it
//
// A line of the file has a key, a colon and its quotas, as in "ann: 1000/m, 20000/d"
// or "bob: unlimited": see [QuotaFile]. A key that the table does not have keeps the
// quotas in limits. The file is below the folder of the policy file, and is read again when it
// changes if the policy file is watched. A broken table is logged, and the former one stays in
// force. The counts of a key stay when its quota changes. The field quota is an
// expression for the quota of a request, for keys that the table does not have. Its value is a number,
// text as in the table, or empty for the quotas in limits. A request whose
// value is no quota is denied with 400.
//
// # Which requests
//
// A policy applies to a request that meets all conditions of its match. The
// method GET includes HEAD. Three lists, exempt, deny and only, have addresses
// of clients. The policy does not limit addresses in exempt. Addresses in deny
// are denied with 403; if exempt and deny both have an address, the longest
// prefix that contains it decides. If the policy has the list only, every
// address outside that list is denied with 403 too, even one in exempt.
//
// In a path, * or {id} or :id matches one segment, and ** at the end matches any
// number of segments. At the end of a path, {rest...} and *rest mean the same as
// **, :id? matches one segment or none, and {$} matches nothing. A lone * is one
// segment at the end too, although it matches any number in the routes of chi,
// Echo and Fiber. Patterns with a plus, a regular expression or a colon inside a
// segment are refused. Letter case is ignored. No spelling of a path gets around a
// policy: routers read odd paths differently, so the policy applies if its pattern
// matches any reading. Empty segments and "." are tried both as
// segments and left out; escapes are undone, once or several times; an escaped
// slash is tried both as a slash and as a part of its segment. A path with a ".."
// segment, escaped or not, matches every pattern. If the router has matched a
// route before it runs the middleware (Gin, Echo's Use, one route of any router),
// the route is compared too. This holds for http.ServeMux, chi, Gin, Echo (v4 and v5) and
// Fiber (v2 and v3) in all their modes for paths, with these exceptions, in which a plain
// path reaches a handler that its route does not show:
//
//   - Echo: a parameter at the end of a route matches slashes, so /items/7/x
//     reaches /items/:id. Mount the policies with Use, not with Pre or around
//     Echo, or write /items/**.
//   - Echo: Static("/files", dir) serves the file x for /filesx too. Mount the
//     policies with Use, or write Static("/files/", dir).
//   - chi: a parameter with a regular expression that matches a slash, such as
//     {name:.+}, matches several segments. Write the part before it and /**.
//     middleware.URLFormat routes by another path than the request's: mount the
//     policies with With or on the routes, so that the route is compared.
//   - Fiber: app.Use("/api", h) gives h every path that begins so, /apix too. Write
//     the path of h's routes, or /**. Static("/files", dir) does so too: give it a
//     Next that leaves paths out that do not begin with /files/.
//   - Fiber: the wildcards * and + match slashes in the middle of a route, and so
//     does a parameter with other text than a slash behind it, as in /:from-:to or
//     /:name.json. Write the part before it and /**.
//   - A gateway, http.StripPrefix or a middleware that rewrites the path: patterns are
//     compared with the path that the request has where the policies are mounted. Mount
//     them behind the rewriting.
//
// A request that passes the policies several times, because they are mounted in several
// places or a handler routes it again, is counted each time, for the path that it then has.
//
// A CORS preflight is limited only by policies that name methods, OPTIONS among
// them. The lists only and deny deny it nevertheless.
//
// # Expressions
//
// A tier is what authentication knows about the client: the program gives it with
// [WithTier]. A client can choose a tier or a key that is read from a header, unless a
// proxy sets the header of every request: name such a header in trusted-headers.
// [Set.Warnings] reports tiers and keys that a client can choose.
//
// Keys, fallbacks, tiers, costs, quotas and match.when are expressions in the language
// of github.com/expr-lang/expr. They see method, path, route, ip, user,
// header["x"], query["x"], param["x"], cookie["x"], form["x"] and json["a.b"], and
// cidr(ip, "10.0.0.0/8", ...) says whether an address is in one of the prefixes.
// The form that MuleSoft writes, #[attributes.headers['x']], is read too. It needs
// quotes, because # begins a comment. Values that are not text become text: true,
// 12, 0.5. There are no loops, no variables, and no functions that make long values
// of short ones. An evaluation reads at most 64 KiB of a request; with matches, at
// most 500,000 bytes divided by the size of the compiled regular expressions,
// which together have at most 500 instructions. A request with longer values is
// denied with 400, or, if match.when reads them, counted. So the longest
// evaluation takes some thirty milliseconds, and a usual one a microsecond.
//
// query, cookie, form and json see the value that every framework's handlers
// read. A request in which they could read different values is denied with 400:
// a value given twice, a form's field that is in the query too, a form or a JSON
// body that is malformed, compressed or longer than 64 KiB.
//
// param["id"] is the parameter id of the matched route, such as /users/{id}: see
// core.Request. It is empty before the router has matched a route, and in routes without
// the parameter. The first such request is said in the log.
//
// path is the path as the client has written it, and each spelling is a key of its
// own. To count spellings together, use route, or a policy for these paths.
//
// Requests for which the key is empty, such as those without the header that it reads,
// are counted by the fallback. If it is empty too, missing says what happens:
// own-bucket, the default, lets all of them share one counter, skip does not limit
// them, and reject denies them with 400. Write one of the three if requests may lack
// the key: [Set.Warnings] asks for it.
//
// # Several policies
//
// All policies that apply to a request must allow it, or it is charged to none: they
// are rules of one limiter, [Set.Limiter], which decides on them in one step and one
// exchange with the store. If some policies count in the store and some in the
// process, a request is charged in the process first, and refunded there if the
// store denies it. A request that is denied with 400 counts for the other policies.
// Policies with dry-run: true are rules of another limiter, [Set.DryRun]: it decides on
// the requests that the first one allows, in one more exchange. Lists of denied
// addresses need no store: they deny while it is gone.
//
// The name of a counter has the file's name, the policy's name, a dot and the rule's
// name if the policy has rules, and a dash and the tier's name if the rule has tiers.
// If one of these names changes, or dry-run, the counter starts at zero. A policy that counts in
// the process also starts at zero if it is removed and comes back.
//
// # Waiting
//
// With wait: 2s, a request that the policy would deny waits for its turn, for at most two seconds: see
// core.Config.MaxWait. If several policies deny a request, all of them must have a
// wait that is long enough. A dry run and lists of denied addresses make no
// request wait. local has how many requests wait in the process: max-waiting, and
// max-waiting-of-key for one key of a rule. A changed file may change all of these.
//
// # What is shared
//
// With counting: local, every process has its own counters: n processes together
// allow n times the limit. With a store, counting: shared is the
// default, and its limits hold for all processes; see packages stores/redis,
// stores/memcached and stores/synced for what each promises.
//
// A synced store exchanges with Redis or with PostgreSQL:
//
//	store:
//	  synced:
//	    postgres: {address: db:5432, user: limits, password: {env: PGPASSWORD}, database: app, tls: true}
//	    interval: 100ms
package policy
