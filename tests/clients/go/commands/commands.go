// Package commands is how a test drives a member: commands on standard input, one JSON object a line on standard output.
package commands

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

var output sync.Mutex

// Report prints {event: partitions}, the partitions in ascending order.
func Report(event string, partitions []int32) {
	output.Lock()
	defer output.Unlock()
	ordered := append([]int32{}, partitions...)
	slices.Sort(ordered)
	line, err := json.Marshal(map[string][]int32{event: ordered})
	Check(err)
	fmt.Println(string(line))
}

// Check ends the process when there is an error.
func Check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Read calls commit for each line "commit OFFSET" until standard input ends.
func Read(commit func(offset int64)) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		argument, found := strings.CutPrefix(lines.Text(), "commit ")
		if !found {
			Check(fmt.Errorf("unknown command %q: expected \"commit OFFSET\"", lines.Text()))
		}
		offset, err := strconv.ParseInt(argument, 10, 64)
		Check(err)
		commit(offset)
	}
	Check(lines.Err())
}
