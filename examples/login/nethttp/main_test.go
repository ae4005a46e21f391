package main

import (
	"testing"

	"github.com/floodgate-go/floodgate/examples/login/site"
	"github.com/floodgate-go/floodgate/examples/login/site/sitetest"
)

func TestSite(t *testing.T) {
	serve := func(s *site.Site) site.Server { return site.HTTPServer(routes(s)) }
	t.Run("memory", func(t *testing.T) { sitetest.Run(t, serve) })
	sitetest.RunWithStores(t, serve)
}
