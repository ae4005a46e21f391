package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"time"

	"github.com/redis/go-redis/v9"
)

// server is something that listens.
type server struct {
	addr string
	stop func()
}

// startRedis starts a Redis of its own, which keeps nothing.
func startRedis() (server, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return server{}, errors.New("redis-server is not installed (Debian: apt-get install redis-server)")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a free port is wanted, at once
	if err != nil {
		return server{}, err
	}
	addr := l.Addr().(*net.TCPAddr)
	_ = l.Close()
	dir, err := os.MkdirTemp("", "bench-redis-")
	if err != nil {
		return server{}, err
	}
	cmd := exec.Command(path, "--port", fmt.Sprint(addr.Port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir) //nolint:gosec,noctx // it ends with stop
	if err := cmd.Start(); err != nil {
		return server{}, err
	}
	s := server{addr.String(), func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}}
	client := redis.NewClient(&redis.Options{Addr: s.addr})
	defer client.Close() //nolint:errcheck // nothing depends on it
	for range 200 {
		if err = client.Ping(context.Background()).Err(); err == nil {
			return s, nil
		}
		time.Sleep(25 * time.Millisecond)
	}
	s.stop()
	return server{}, err
}

// delayed stands before a server, and gives on what it answers only some time
// later: connections stay as wide as they are.
func delayed(target string, by time.Duration) (server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with stop
	if err != nil {
		return server{}, err
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go relay(client, target, by)
		}
	}()
	return server{l.Addr().String(), func() { _ = l.Close() }}, nil
}

func relay(client net.Conn, target string, by time.Duration) {
	defer client.Close()                   //nolint:errcheck // nobody is left to tell
	server, err := net.Dial("tcp", target) //nolint:noctx // it ends with the client
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // nobody is left to tell
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	type answer struct {
		at   time.Time
		data []byte
	}
	answers := make(chan answer, 1024)
	go func() {
		defer close(answers)
		for {
			data := make([]byte, 4096)
			n, err := server.Read(data)
			if n > 0 {
				answers <- answer{time.Now().Add(by), data[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	for a := range answers {
		time.Sleep(time.Until(a.at))
		if _, err := client.Write(a.data); err != nil {
			break
		}
	}
	for range answers { // what is left is dropped, so that the reader ends
	}
}
