package vmstructs

var capturedDebugInfo = []struct {
	pcs, scopes string
	methods     uint16
	x           uint8
}{}
var capturedLines = []struct {
	bytes string
	x     uint8
}{}
