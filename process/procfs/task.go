package procfs

import "strconv"

// TaskFile is the path of a file of one thread.
func TaskFile(pid, tid int, name string) string {
	return "/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(tid) + "/" + name
}

// EachTask calls each for every number among the names that getdents64 has read from /proc/PID/task. A struct
// linux_dirent64 (include/linux/dirent.h) has inode and offset of 8 bytes each, the record's length in 2 bytes, a type
// in 1 byte, and the name, ended by a zero.
func EachTask(dirents []byte, each func(tid int)) {
	for b := dirents; len(b) > 19; {
		size := int(b[16]) | int(b[17])<<8
		if size < 19 || size > len(b) {
			return
		}
		if tid, rest, ok := CutUint(b[19:size]); ok && len(rest) > 0 && rest[0] == 0 {
			each(int(tid))
		}
		b = b[size:]
	}
}
