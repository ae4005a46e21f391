package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"time"

	"connectrpc.com/connect"
	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v2"
	fiber3 "github.com/gofiber/fiber/v3"
	"github.com/labstack/echo/v4"
	echo5 "github.com/labstack/echo/v5"
	"github.com/valyala/fasthttp"
	"google.golang.org/grpc"

	"github.com/floodgate-go/floodgate/bench/peers"
)

// framework serves a request again and again, under a peer's middleware or
// under none.
type framework struct {
	name  string
	serve func(p *peers.Peer, l peers.Limit) func(n int) // nil: the peer has none for it
}

var frameworks = []framework{
	{"net/http", func(p *peers.Peer, l peers.Limit) func(int) {
		var h http.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
		if p != nil {
			if p.HTTP == nil {
				return nil
			}
			h = p.HTTP(l)(h)
		}
		return serveHTTP(h)
	}},
	{"Gin", func(p *peers.Peer, l peers.Limit) func(int) {
		gin.SetMode(gin.ReleaseMode)
		g := gin.New()
		if p != nil {
			if p.Gin == nil {
				return nil
			}
			g.Use(p.Gin(l))
		}
		g.GET("/", func(*gin.Context) {})
		return serveHTTP(g)
	}},
	{"Echo", func(p *peers.Peer, l peers.Limit) func(int) {
		e := echo.New()
		if p != nil {
			if p.Echo == nil {
				return nil
			}
			e.Use(p.Echo(l))
		}
		e.GET("/", func(echo.Context) error { return nil })
		return serveHTTP(e)
	}},
	{"Echo v5", func(p *peers.Peer, l peers.Limit) func(int) {
		e := echo5.New()
		if p != nil {
			if p.Echo5 == nil {
				return nil
			}
			e.Use(p.Echo5(l))
		}
		e.GET("/", func(*echo5.Context) error { return nil })
		return serveHTTP(e)
	}},
	{"Fiber", func(p *peers.Peer, l peers.Limit) func(int) {
		f := fiber.New()
		if p != nil {
			if p.Fiber == nil {
				return nil
			}
			f.Use(p.Fiber(l))
		}
		f.Get("/", func(*fiber.Ctx) error { return nil })
		return serveFast(f.Handler())
	}},
	{"gRPC", func(p *peers.Peer, l peers.Limit) func(int) {
		var limit grpc.UnaryServerInterceptor
		if p != nil {
			if p.GRPC == nil {
				return nil
			}
			limit = p.GRPC(l)
		}
		return peers.ServeGRPC(limit)
	}},
	{"Connect", func(p *peers.Peer, l peers.Limit) func(int) {
		var limit connect.Interceptor
		if p != nil {
			if p.Connect == nil {
				return nil
			}
			limit = p.Connect(l)
		}
		h := peers.Connect(limit)
		return func(n int) {
			w := peers.Discard{H: http.Header{}}
			for range n {
				clear(w.H)
				h.ServeHTTP(w, peers.ConnectCall("192.0.2.1"))
			}
		}
	}},
	{"Fiber v3", func(p *peers.Peer, l peers.Limit) func(int) {
		f := fiber3.New()
		if p != nil {
			if p.Fiber3 == nil {
				return nil
			}
			f.Use(p.Fiber3(l))
		}
		f.Get("/", func(fiber3.Ctx) error { return nil })
		return serveFast(f.Handler())
	}},
}

func serveFast(handler fasthttp.RequestHandler) func(int) {
	return func(n int) {
		var c fasthttp.RequestCtx
		var r fasthttp.Request
		r.SetRequestURI("/")
		c.Init(&r, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 99}, nil)
		for range n {
			c.Response.Reset()
			c.ResetUserValues() // as a server does between requests
			handler(&c)
		}
	}
}

func serveHTTP(h http.Handler) func(int) {
	return func(n int) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = "192.0.2.1:99"
		w := peers.Discard{H: http.Header{}}
		for range n {
			clear(w.H)
			h.ServeHTTP(w, r)
		}
	}
}

// middlewares measures the whole middleware above the bare handler.
func middlewares(e effort, p peers.Peer) (tables []Table, err error) {
	for _, f := range frameworks {
		if f.serve(&p, ample) == nil {
			continue
		}
		took := Table{
			Title: "The middleware of " + f.name + " above the bare handler", Unit: "ns", Lower: true, Ours: "floodgate",
			Text: "The same handler, request and recorder for all, by the client's address. Each peer writes the headers that it writes by default.",
		}
		allocs := Table{Title: "Allocations of the middleware of " + f.name, Lower: true, Ours: "floodgate", Decimals: 1}
		var bare Sample
		e.measure(1, func(_, n int) { f.serve(nil, ample)(n) }, &bare, nil)
		for column, limit := range map[string]peers.Limit{"allowed": ample, "denied": {Quota: 1, Window: 24 * time.Hour}} {
			serve := f.serve(&p, limit)
			serve(2)
			runtime.GC()
			var whole Sample
			e.measure(1, func(_, n int) { serve(n) }, &whole, allocs.cell(p, column))
			cell := took.cell(p, column)
			for _, v := range whole.Values {
				cell.Values = append(cell.Values, v-bare.median())
			}
		}
		took.order("allowed", "denied")
		allocs.order("allowed", "denied")
		tables = append(tables, took, allocs)
	}
	return tables, nil
}
