package main

import (
	"testing"

	"github.com/floodgate-go/floodgate/examples/login/site"
	"github.com/floodgate-go/floodgate/examples/login/site/sitetest"
)

func TestSite(t *testing.T) {
	sitetest.Run(t, func(s *site.Site) site.Server { return server{routes(s)} })
}
