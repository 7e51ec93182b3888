// Package rpc is what a face for editors stands on: the bounded [Stream] of JSON-RPC messages over stdio, the requests in
// flight ([Calls]), the decoding of params with errors that name the field, and the one mapping from errors to wire codes
// ([Error]). It does not know LSP; that is rpc/lsp. The fermata/* protocol itself is rpc/wire.
//
// It promises that no input of a client ends the connection but the end of the input, that memory is bounded by what was
// received, and that everything written is one whole message. A Stream is read by one goroutine and written by any.
package rpc
