package readers

import (
	"bufio"
	"bytes"
	"net"

	"github.com/valyala/fasthttp"
)

// OverFastHTTP reads a request as the server does, and passes it to a handler of fasthttp.
func OverFastHTTP(serve fasthttp.RequestHandler, streams bool) func([]byte) {
	buffer := bufio.NewReaderSize(nil, 1<<18)
	return func(raw []byte) {
		var ctx fasthttp.RequestCtx
		buffer.Reset(bytes.NewReader(raw))
		ctx.Init(new(fasthttp.Request), &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4711}, nil)
		var err error
		if streams {
			if err = ctx.Request.Header.Read(buffer); err == nil {
				err = ctx.Request.ContinueReadBodyStream(buffer, 1<<20, true)
			}
		} else {
			err = ctx.Request.ReadLimitBody(buffer, 1<<20)
		}
		if err != nil {
			return // the server refuses it
		}
		serve(&ctx)
		ctx.Request.RemoveMultipartFormFiles()
	}
}
