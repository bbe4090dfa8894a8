// Package mcp is a server of the Model Context Protocol (modelcontextprotocol.io) over two streams: lines of
// JSON-RPC 2.0. It implements only the tools of the protocol.
//
//	err := (&mcp.Server{Name: "goprof", Tools: tools}).Serve(ctx, os.Stdin, os.Stdout)
//
// The client is not trusted. The length of a line, the arguments of a tool, the number of calls at a time and the
// stored answers are bounded. Arguments are checked by the tool's table before the tool is called. A line that cannot
// be read is answered by an error, and the next line is read. A call ends when its client cancels it, when its time is
// over, and when the input ends.
package mcp
