"""tutti bench: what it measures can be picked, and is told for people and for programs."""

import program


class Bench(program.ProgramTest):
    def test_every_part_has_rows_with_times(self):
        told = self.succeed("bench", "--milliseconds", "5", "--json").json
        self.assertEqual(told["device"], "cpu")
        self.assertEqual({row["name"] for row in told["rows"]}, {"single", "batch", "ensemble", "fit"})
        for row in told["rows"]:
            self.assertGreater(row["p50_us"], 0, row)
            self.assertGreaterEqual(row["p99_us"], row["p50_us"], row)
            self.assertGreater(row["per_second"], 0, row)

    def test_parts_by_name(self):
        lines = self.succeed("bench", "ensemble", "--milliseconds", "5", "--threads", "1").out.splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["NAME", "ensemble"])

    def test_wrong_names_are_wrong_usage(self):
        self.refuse(2, "there is no benchmark 'singel'; there are single, batch, ensemble, fit", "bench", "singel")
        self.refuse(2, "unknown device 'gpu'", "bench", "single", "--device", "gpu")


if __name__ == "__main__":
    program.main()
