// Package mcp serves the Model Context Protocol (modelcontextprotocol.io) over two streams, as lines of JSON-RPC 2.0.
// It implements only the tools of the protocol.
//
//	err := (&mcp.Server{Name: "goprof", Tools: tools}).Serve(ctx, os.Stdin, os.Stdout)
//
// The client is not trusted. The length of a line, the arguments of a tool, the number of waiting calls and the stored
// answers are limited. Arguments are checked against the tool's table before the tool is called. A line that cannot be
// parsed gets an error as its answer, and the next line is read. A call ends when its client cancels it, when its time
// is over, or when the input ends.
package mcp
