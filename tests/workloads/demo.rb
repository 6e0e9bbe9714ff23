# SPDX-License-Identifier: GPL-2.0-or-later
#
# The program that "./bootstrap demo" records: a small server's life without the network. Each request
# reads its input from the kernel, checks it, and sorts the numbers in it; Input#checksum, a loop in
# Ruby, is the hot one.
#
# usage: ruby demo.rb [CPU-SECONDS]

class Input
  SIZE = 1 << 15		# bytes read for a request
  ROUNDS = 4			# checksums of them
  MASK = 0xffffffff

  def initialize(file)
    @words = file.read(SIZE).unpack("L*")
  end

  def check
    sum = 0
    ROUNDS.times { |seed| sum ^= checksum(seed) }
    sum
  end

  def checksum(seed)
    a = b = seed
    i = 0
    while i < @words.size
      a = (a + @words[i]) & MASK
      b = (b + a) & MASK
      i += 1
    end
    a + b
  end

  def first(n)
    @words.first(n)
  end
end

class Server
  def initialize(file)
    @file = file
    @answers = 0
  end

  def handle_request
    input = Input.new(@file)
    answer(input.check, rank(input.first(1000)))
  end

  def rank(words)
    words.sort_by { |word| word.digits.sum }
  end

  def answer(sum, ranked)
    text = ranked.map { |word| word.to_s(16) }.join(" ")
    @answers += 1 if text.include?(sum.to_s(16))
  end

  def serve(seconds)
    handle_request while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < seconds
    @answers
  end
end

File.open("/dev/urandom", "rb") { |file| Server.new(file).serve((ARGV[0] || 3).to_f) }
