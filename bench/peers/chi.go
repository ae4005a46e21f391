package peers

import "github.com/go-chi/chi/v5/middleware"

// chiThrottle limits what runs at once in the process, for all clients together.
var chiThrottle = Peer{Name: "chi's Throttle", Module: "github.com/go-chi/chi/v5", InFlight: middleware.Throttle}
