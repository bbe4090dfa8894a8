package pprof

import "goprof/profile/protobuf"

// A file may take memory in proportion to its size, plus a fixed amount. In a usual profile (threads as labels, stacks
// of five frames) each byte of the file takes 53 bytes of memory, or 162 if the file is packed. In a malicious file it
// takes 200, or 100,000 if the file is packed.
const (
	freeUnpacked   = 16 << 20 // bytes
	unpackedOfByte = 100
	freeMemory     = 64 << 20
	memoryOfByte   = 80
	memoryOfPacked = 250
)

// memoryFor returns how much memory the parser may take for a file of so many bytes, given its unpacked size.
func memoryFor(size, unpacked int) int64 {
	return freeMemory + int64(min(memoryOfByte*unpacked, memoryOfPacked*size))
}

// What the parser allocates for each message and number (package github.com/google/pprof/profile, encode.go and
// profile.go). Slices that grow have room for twice as many.
const (
	memoryOfValueType  = 80
	memoryOfSample     = 220
	memoryOfMapping    = 220
	memoryOfLocation   = 130
	memoryOfFunction   = 150
	memoryOfString     = 32 // plus its bytes
	memoryOfComment    = 64
	memoryOfLine       = 64
	memoryOfLocationID = 32
	memoryOfValue      = 16
	memoryOfLabel      = 400
	memoryOfLabels     = 800 // three maps for each sample with labels
)

const (
	profileSampleType = 1
	profileSample     = 2
	profileMapping    = 3
	profileLocation   = 4
	profileFunction   = 5
	profileString     = 6
	profileComment    = 13

	sampleLocation = 1
	sampleValue    = 2
	sampleLabel    = 3

	locationLine = 4
)

// checkMemory refuses data for which the parser would need more memory than left. It leaves malformed data to the
// parser, which refuses it.
func checkMemory(data []byte, left int64) error {
	protobuf.Each(data, func(f protobuf.Field) bool {
		left -= memoryOf(f)
		return left >= 0
	})
	if left < 0 {
		return &Bad{Problem: "it would take more memory than a file of its size may", TooMuch: true}
	}
	return nil
}

// memoryOf returns how much memory the parser needs for a field of the outermost message.
func memoryOf(f protobuf.Field) int64 {
	switch f.ID {
	case profileSampleType:
		return memoryOfValueType
	case profileSample:
		return memoryOfSample + memoryInSample(f.Data)
	case profileMapping:
		return memoryOfMapping
	case profileLocation:
		return memoryOfLocation + memoryOfLine*count(f.Data, locationLine)
	case profileFunction:
		return memoryOfFunction
	case profileString:
		return memoryOfString + int64(len(f.Data))
	case profileComment:
		return memoryOfComment * numbers(f)
	}
	return 0
}

func memoryInSample(sample []byte) (sum int64) {
	labels := false
	protobuf.Each(sample, func(f protobuf.Field) bool {
		switch f.ID {
		case sampleLocation:
			sum += memoryOfLocationID * numbers(f)
		case sampleValue:
			sum += memoryOfValue * numbers(f)
		case sampleLabel:
			sum += memoryOfLabel
			labels = true
		}
		return true
	})
	if labels {
		sum += memoryOfLabels
	}
	return sum
}

func count(message []byte, id int) (n int64) {
	protobuf.Each(message, func(f protobuf.Field) bool {
		if f.ID == id {
			n++
		}
		return true
	})
	return n
}

// numbers returns how many numbers a field has: one, or those that are packed into it. The last byte of each is below
// 128.
func numbers(f protobuf.Field) int64 {
	if f.Data == nil {
		return 1
	}
	n := int64(0)
	for _, b := range f.Data {
		if b < 128 {
			n++
		}
	}
	return n
}
