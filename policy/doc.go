// Package policy applies limits that stand in a file, so that who runs a
// service changes them without a build.
//
//	set, err := policy.Watch(ctx, "limits.yaml", policy.WithTier(planOfUser))
//	http.ListenAndServe(addr, httplimit.Middleware(set)(app))
//
// A [Set] is a core.Checker: the Middleware of every adapter takes it, and one
// of them applies the file to a whole application. [Watch] reads a file again
// when it changes; one that has anything wrong with it is refused, with the
// place of each mistake, and the last good one stays.
//
// # A file
//
// It is YAML, of which JSON is a part. Whatever it does not know is an error.
//
//	name: api                       # without this: policies; names the counters in a store
//	client-ip:                      # without this: the peer of the connection
//	  trusted-proxies: [10.0.0.0/8]
//	  header: X-Forwarded-For
//	store:                          # without this: every process counts for itself
//	  redis: {address: redis:6379, password: {env: REDIS_PASSWORD}}
//	  meanwhile: in-process         # how to decide while the store does not answer
//	  remember-denials: true        # false: ask the store about each denied request too
//	policies:
//	  - name: by-method
//	    match: {paths: [/api/**]}
//	    key: method                 # which counter; without it, one for all
//	    limits: 3/6s                # or {maximumRequests: 3, timePeriodInMilliseconds: 6000}
//	    headers: x-milliseconds     # none without this
//	  - name: by-client
//	    key: header["x-api-key"]
//	    fallback: ip                # where there is no such header
//	    tiers: {default: 100/m, paid: [1000/m, 20000/d]} # by WithTier
//	    deny: [203.0.113.0/24]
//	  - name: planned
//	    key: ip
//	    limits: 10/s token_bucket burst=20
//	    shadow: true                # decide, count and report, refuse nothing
//
// [Schema] has a JSON Schema of it, with all fields and what they mean. Limits
// are written as core.Limits reads them; the algorithm, where none is named, is
// fixed_window.
//
// # Which requests
//
// A policy is for a request if every part of its match is. GET among the
// methods includes HEAD. The longest prefix that contains the client's address
// decides among the address lists: allow exempts the request from the policy,
// deny refuses it with 403.
//
// In a path, * or {id} or :id matches one segment, and ** at the end matches any
// number of segments. At the end of a path, {rest...} and *rest mean the same as
// **, :id? matches one segment or none, and {$} matches nothing. A lone * is one
// segment at the end too, although it matches any number in the routes of chi,
// Echo and Fiber. Patterns with a plus, a regular expression or a colon inside a
// segment are refused. Letter case is ignored. No spelling of a path gets around a
// policy: routers read odd paths differently, so the policy is for the request
// if its pattern matches any reading. Empty segments and "." are tried both as
// segments and left out; escapes are undone, once or several times; an escaped
// slash is tried both as a slash and as a part of its segment. A path with a ".."
// segment, escaped or not, matches every pattern. If the router has matched a
// route before it runs the middleware (Gin, Echo's Use, one route of any router),
// the route is compared too. This holds for http.ServeMux, chi, Gin, Echo and
// Fiber in all their modes for paths, with these exceptions, in which a plain
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
//   - A gateway, http.StripPrefix or a middleware that rewrites the path behind
//     the policies: patterns are compared with the path that reaches the policies.
//     Mount them behind it, or before it and behind it.
//
// A request may come back to the policies with another method or path, if they are
// mounted in several places or a handler routes it again, as Fiber's
// c.RestartRouting does. The policies that are for its new path then decide on it
// too, and those that have counted it do not count it again. What they were
// charged stays if a policy for the new path denies the request. Gin's
// HandleContext, Echo's ServeHTTP called with the request by a handler, and a
// net/http handler that calls itself through its only Middleware forget what has
// counted a request: it is counted for the new path by all policies for it.
//
// A CORS preflight is limited only by policies that name methods, OPTIONS among
// them. A list of denied addresses refuses it all the same.
//
// # Expressions
//
// A tier is what authentication has found out about the client: the program says
// it with [WithTier]. A tier read from a header is the client's own choice, unless
// a proxy sets that header for every request. [Set.Warnings] has such mistakes.
//
// Keys, fallbacks, tiers, costs and match.when are expressions in the language
// of github.com/expr-lang/expr. They see method, path, route, ip, user,
// header["x"], query["x"], cookie["x"], form["x"] and json["a.b"], and
// cidr(ip, "10.0.0.0/8", ...) says whether an address is in one of the prefixes.
// What MuleSoft writes, #[attributes.headers['x']], is read as well, and stands
// in quotes, as # begins a comment. Values that are not text become text: true,
// 12, 0.5. There are no loops, variables or functions that make long values of
// short ones. An evaluation reads at most 64 KiB of a request; with matches, at
// most 500,000 bytes divided by the size of the compiled regular expressions,
// which together have at most 500 instructions. A request with longer values is
// refused with 400, or, if match.when reads them, counted. So the longest
// evaluation takes some thirty milliseconds, and a usual one a microsecond.
//
// query, cookie, form and json see the value that every framework's handlers
// read. A request in which they could read different values is refused with 400:
// a value given twice, a form's field that is in the query too, a form or a JSON
// body that is malformed, compressed or longer than 64 KiB.
//
// path is what the client has written, and each spelling of it a key of its own:
// what has to be counted together is better told by route, or by a policy of its
// own.
//
// The empty key is a key like any other: requests without what the key names
// share a counter. missing: skip has the policy's rule not apply to them, and
// missing: reject refuses them with 400.
//
// # Several policies
//
// All policies that are for a request must allow it, or it is charged to none:
// they are rules of one limiter, [Set.Limiter], which decides on them in one step
// with one exchange with the store. If some policies count in the store and some
// in the process, a request is charged in the process first, and given back there
// if the store denies it. A request that is refused with 400 counts for the other
// policies. Shadow policies are decided on together too, by one more exchange.
// Lists of denied addresses need no store: they deny while it is gone.
//
// The names of counters are made of the file's name, the policy's name, the name of
// one of its rules behind a dot, and the name of a tier behind a dash. Whoever
// changes one of them begins to count anew. A policy that is removed and comes back
// begins anew too if it counts in the process.
//
// # What is shared
//
// With counting: local, every process has counters of its own: n processes
// together admit n times the limit. With a store, counting: shared is the
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
