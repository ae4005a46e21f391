// Package rpc has what the adapters of gRPC and Connect share: the outcome of a call by its
// code, the refusal of a call, and the decisions on a call and its messages. It knows
// neither framework. A program of the one does not compile the other.
package rpc
