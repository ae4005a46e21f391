// Package adaptertest is the table of HTTP behaviour that every adapter passes:
// what holds in one framework holds in all.
//
// An adapter's test describes its framework as an [Adapter] and calls [Run],
// which starts real servers on the loopback interface and speaks HTTP/1.1 with
// them.
package adaptertest
